"""Tables of what runs think with: the model catalogue, credentials, gateway services, the ledger of requests, breakers.

Also what stands between a run and its driver: leases of remote drivers, images brought by clients, conformance results;
and the facts of simulated clients.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import DOUBLE, created, metadata, project, time

models = Table(
    "models", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    Column("credential_id", Text),
    Column("private", Boolean, nullable=False, server_default=text("false")),  # an operator's: may be at a private address
    time("checked_at"),
    Column("check_result", JSONB),
    created(),
    UniqueConstraint("project_id", "name"),
)  # fmt: skip

# Public keys of gateways: whoever brings a credential can seal it, only the gateway can open it.
sealing_keys = Table(
    "sealing_keys", metadata,
    Column("id", Text, primary_key=True),
    Column("public_key", LargeBinary, nullable=False),
    created(),
)  # fmt: skip

credentials = Table(
    "credentials", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("purpose", Text, nullable=False),  # model | judge | service
    Column("key_id", Text, ForeignKey("sealing_keys.id"), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("hint", Text, nullable=False, server_default=""),  # how it is told from others, e.g. its last characters' hash
    created(), time("replaced_at"),
    Index("ix_credentials_project", "project_id"),
)  # fmt: skip

services = Table(
    "services", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    Column("credential_id", Text),
    Column("private", Boolean, nullable=False, server_default=text("false")),
    created(),
    UniqueConstraint("project_id", "name"),
)  # fmt: skip

# The ledger: one row per request to a model, made before it is forwarded, settled when it ended.
model_requests = Table(
    "model_requests", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE")),  # null: of no run
    Column("attempt", Integer),
    Column("n", Integer),  # of the run, from 1
    Column("purpose", Text, nullable=False, server_default="agent"),  # agent | client | judge | check
    Column("subject", Text),  # what it was asked for, where it is no run's agent: a grading's id, say
    Column("gateway_id", Text, nullable=False, server_default=""),  # whose it is while it is not settled
    Column("state", Text, nullable=False, server_default="started"),  # started | finished
    Column("model_id", Text), Column("provider", Text), Column("dialect", Text),
    Column("route", Text, nullable=False, server_default=""),  # method and path, without a query
    Column("requested_model", Text), Column("reported_model", Text), Column("provider_request_id", Text),
    Column("streaming", Boolean, nullable=False, server_default=text("false")),
    Column("status", Integer),  # what the client got; null = it went away before
    Column("error", Text),  # typed cause, null = none
    Column("provider_error", Boolean, nullable=False, server_default=text("false")),  # the provider's doing, not the client's
    Column("tries", Integer, nullable=False, server_default="1"),
    Column("usage_known", Boolean, nullable=False, server_default=text("false")),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cached_input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cache_write_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("reasoning_tokens", BigInteger, nullable=False, server_default="0"),
    # What budgets count while, and if for ever, the usage is not known.
    Column("reserved_tokens", BigInteger, nullable=False, server_default="0"), Column("reserved_usd", Numeric(20, 10)),
    Column("cost_usd", Numeric(20, 10)), Column("cost_basis", Text, nullable=False, server_default="unknown"),
    Column("price_date", Date),
    Column("server_tools", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # provider-side tool → uses
    Column("finish_reason", Text),  # in the dialect's own words
    Column("first_token_s", DOUBLE), Column("total_s", DOUBLE), Column("wait_s", DOUBLE, nullable=False, server_default="0"),
    Column("request_blob", Text), Column("response_blob", Text),  # redacted bodies
    Column("cassette", JSONB),  # key, nth, timing of chunks: what a replay needs beside the bodies
    created(), time("finished_at"),
    Index("ix_model_requests_run", "run_id", "n"),
    Index("ix_model_requests_project", "project_id", "created_at"),
    Index("ix_model_requests_subject", "subject", postgresql_where=text("subject is not null")),
    Index("ix_model_requests_open", "gateway_id", postgresql_where=text("state = 'started'")),
)  # fmt: skip

# The same for calls of runs to gateway services: the price is taken when a call leaves.
service_calls = Table(
    "service_calls", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("n", Integer, nullable=False),  # of the run, from 1
    Column("gateway_id", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="started"),  # started | finished
    Column("service", Text, nullable=False),
    Column("method", Text, nullable=False), Column("path", Text, nullable=False),  # below the service, without a query
    Column("status", Integer), Column("error", Text),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("units", Numeric(20, 6)),  # what the price counts; null = calls only
    Column("cost_usd", Numeric(20, 10)), Column("price_date", Date),
    Column("seconds", DOUBLE),
    Column("request_blob", Text), Column("response_blob", Text),  # redacted bodies
    Column("cassette", JSONB),  # what a replay needs beside the bodies: the query, the answer's headers and timing
    Column("replay_of_n", Integer),  # number of the recorded call that answered in the service's place
    created(), time("finished_at"),
    UniqueConstraint("run_id", "n"),
    Index("ix_service_calls_open", "gateway_id", postgresql_where=text("state = 'started'")),
)  # fmt: skip

breakers = Table(
    "breakers", metadata,
    Column("provider", Text, nullable=False),
    Column("model_id", Text, nullable=False),
    Column("credential_id", Text, nullable=False, server_default=""),
    project(),
    Column("state", Text, nullable=False),  # closed | open | half_open
    Column("manual", Boolean, nullable=False, server_default=text("false")),  # an operator's word: no probe changes it
    Column("reason", Text),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("concurrency", Integer),  # present adaptive limit; null = none
    time("opened_at"), time("next_probe_at"),
    Column("updated_at", created().type, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("provider", "model_id", "credential_id"),
)  # fmt: skip

leases = Table(
    "leases", metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    project(),
    Column("attempt", Integer, nullable=False),
    Column("holder", Text, nullable=False),  # what the driver calls itself
    Column("token_id", Text),  # API token that claimed
    Column("secret_hash", LargeBinary, nullable=False),
    created(), time("beat_at"),
    Column("expires_at", created().type, nullable=False),
    time("finished_at"),
    Column("finish", JSONB),  # status, summary, declared usage
)  # fmt: skip

images = Table(
    "images", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("reference", Text),  # registry/name@digest; null = uploaded
    Column("archive", Text),  # sha256 of the uploaded archive's blob
    Column("state", Text, nullable=False),  # pending | ready | refused
    Column("content", JSONB),  # domain.images.ImageContent once it is known
    Column("report", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("credential_id", Text),  # of the registry, until it was fetched
    Column("operation_id", Text),  # its newest import
    Column("private", Boolean, nullable=False, server_default=text("false")),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(),
    UniqueConstraint("project_id", "name"),
)  # fmt: skip

conformance_results = Table(
    "conformance_results", metadata,
    Column("scaffold_id", Text, ForeignKey("scaffolds.id"), nullable=False),
    Column("case_name", Text, nullable=False),
    project(),
    Column("result", Text, nullable=False),  # pass | fail | skipped
    Column("detail", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    created(),
    PrimaryKeyConstraint("scaffold_id", "case_name"),
)  # fmt: skip

# Finished runs whose trace went to a collector, or is on its way there.
traced_runs = Table(
    "traced_runs", metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("claimed_at", created().type, nullable=False, server_default=func.clock_timestamp()),
    time("traced_at"),  # null: on its way
)  # fmt: skip

# What only a task's simulated client knows, where the task did not bring it: made once, by a model (NEEDS A23).
client_facts = Table(
    "client_facts", metadata,
    Column("task_id", Text, ForeignKey("tasks.id"), primary_key=True),
    project(),
    Column("sha256", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("model", Text, nullable=False),  # catalogue name
    Column("reported_model", Text),  # as the provider calls it
    Column("template", Text, nullable=False),  # name@version
    Column("template_sha256", Text, nullable=False),
    Column("prompt_sha256", Text, nullable=False),  # rendered
    Column("seed", BigInteger, nullable=False),
    Column("usage", JSONB),  # tokens by kind; null = the provider did not say
    Column("author", Text, nullable=False),  # token that asked for it
    Column("operation_id", Text, nullable=False),
    created(),
)  # fmt: skip

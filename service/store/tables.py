"""Tables of the one database. Every table that clients see has ``project_id`` (CONTRACTS 11).

Engine tables (schema ``dbos``) are not here and are never joined.
"""

import re
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

DOUBLE = Double[float]()
EVENT_PARTITIONS = 16
EVENT_PARTITION_NAME = re.compile(r"run_events_p\d+")
fence_sequence = Sequence("fence_seq", metadata=metadata)


def created() -> Column[Any]:
    return Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp())


def time(name: str) -> Column[Any]:
    return Column(name, DateTime(timezone=True))


def project() -> Column[Any]:
    return Column("project_id", Text, ForeignKey("projects.id"), nullable=False)


projects = Table(
    "projects", metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("untrusted", Boolean, nullable=False, server_default=text("false")),
    Column("max_runs", Integer),  # most live runs at once; null = no limit of its own
    Column("budget", JSONB(none_as_null=True)),  # domain.evaluations.EvaluationBudget; null = none
    Column("spend", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # of it, as of the last look
    # Tombstones of transactions below this one may be gone: who read no further than that starts afresh.
    Column("changes_from", BigInteger, nullable=False, server_default="0"),
    created(),
    time("served_at"),  # when a run of it was claimed last: among equals, who waited longest is next
)  # fmt: skip

tokens = Table(
    "tokens", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("kind", Text, nullable=False),  # api | run
    Column("prefix", Text, nullable=False, unique=True),
    Column("hash", LargeBinary, nullable=False),  # sha256 of the whole token
    Column("scopes", ARRAY(Text), nullable=False),
    Column("note", Text, nullable=False, server_default=""),
    Column("run_id", Text),
    Column("attempt", Integer),
    created(), time("expires_at"), time("revoked_at"), time("last_used_at"),
)  # fmt: skip

sessions = Table(
    "sessions", metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("token_id", Text, ForeignKey("tokens.id"), nullable=False),
    created(),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)  # fmt: skip

blob_refs = Table(
    "blob_refs", metadata,
    Column("digest", Text, nullable=False),
    Column("owner_kind", Text, nullable=False),  # upload | task | scaffold | run | event | log | picture | film | evidence
    Column("owner_id", Text, nullable=False),
    project(),
    Column("size_bytes", BigInteger, nullable=False),
    created(),
    PrimaryKeyConstraint("digest", "owner_kind", "owner_id"),
    Index("ix_blob_refs_owner", "owner_kind", "owner_id"),
    Index("ix_blob_refs_project_digest", "project_id", "digest"),
)  # fmt: skip

tasks = Table(
    "tasks", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("manifest", JSONB, nullable=False),
    created(),
    UniqueConstraint("project_id", "digest"),
)  # fmt: skip

scaffolds = Table(
    "scaffolds", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("manifest", JSONB, nullable=False),
    Column("deprecated", Boolean, nullable=False, server_default=text("false")),
    Column("conformance", JSONB),
    created(),
    UniqueConstraint("project_id", "name", "version"),
)  # fmt: skip

agents = Table(
    "agents", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("scaffold_id", Text, ForeignKey("scaffolds.id"), nullable=False),
    Column("digest", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    created(),
    UniqueConstraint("project_id", "digest"),
    UniqueConstraint("project_id", "label", name="uq_agents_label"),
)  # fmt: skip

runs = Table(
    "runs", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    Column("phase", Text, nullable=False),
    Column("hold", JSONB),
    Column("outcome", Text),
    Column("ended_because", Text),
    Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
    Column("agent_id", Text, ForeignKey("agents.id"), nullable=False),
    Column("sample", Integer, nullable=False, server_default="1"),
    Column("attempt", Integer, nullable=False, server_default="0"),  # latest attempt's number; 0 = none yet
    Column("max_attempts", SmallInteger, nullable=False, server_default="3"),
    Column("priority", Integer, nullable=False, server_default="0"),  # higher first
    Column("derived_from", Text),
    Column("limits", JSONB, nullable=False),  # resolved
    Column("environment", Text, nullable=False),
    Column("runtime", Text),  # null = any offered
    Column("labels", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("flags", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("stop_mode", Text), time("stop_requested_at"),
    Column("last_seq", BigInteger, nullable=False, server_default="0"),
    Column("event_count", BigInteger, nullable=False, server_default="0"),
    Column("output_text_bytes", BigInteger, nullable=False, server_default="0"),  # kept in events
    time("last_event_at"),
    Column("turns", Integer, nullable=False, server_default="0"),
    Column("tool_calls", Integer, nullable=False, server_default="0"),
    Column("doing", Text),
    Column("queue_s", DOUBLE), Column("provision_s", DOUBLE), Column("wall_s", DOUBLE),
    Column("waited_for_host_s", DOUBLE, nullable=False, server_default="0"),
    Column("memory_peak_bytes", BigInteger), Column("disk_used_bytes", BigInteger),
    Column("deliverable_digest", Text),
    Column("deliverable_files", Integer, nullable=False, server_default="0"),
    Column("deliverable_bytes", BigInteger, nullable=False, server_default="0"),
    Column("deliverable_problems", Integer, nullable=False, server_default="0"),
    Column("driver", Text, nullable=False, server_default="kit"),  # domain.agents.Driver
    Column("model_id", Text),  # of the catalogue; null = an agent without a model
    Column("budget", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # domain.policies.RunBudget
    Column("network", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # domain.policies.NetworkRules
    Column("provider_tools", Text, nullable=False, server_default="deny"),
    Column("replay_of", Text),  # run whose cassette answers
    Column("evaluation_id", Text),
    Column("keep_on_failure_s", DOUBLE, nullable=False, server_default="0"),
    Column("kit", Text),  # image that its host must have beside the environment
    # What the latest attempt took, as far as the ledger has settled it; dollars are null while none is known.
    Column("requests", Integer, nullable=False, server_default="0"),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cached_input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cache_write_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("reasoning_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost_usd", Numeric(20, 10)), Column("cost_basis", Text), Column("price_date", Date),
    Column("cost_usd_all_attempts", Numeric(20, 10)),  # models and services
    # Calls of the latest attempt to gateway services, and what those with a price cost.
    Column("service_calls", Integer, nullable=False, server_default="0"),
    Column("service_cost_usd", Numeric(20, 10)),
    Column("provider_wait_s", DOUBLE, nullable=False, server_default="0"),
    Column("plan", Text, nullable=False, server_default="task@1"), Column("next_plan", Text),  # takes over once graded
    Column("verdict_state", Text, nullable=False, server_default="pending"),
    Column("score", DOUBLE), Column("max_score", DOUBLE),
    created(), time("queued_at"), time("started_at"), time("deadline_at"), time("ended_at"), time("graded_at"),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Index("ix_runs_project_created", "project_id", "created_at", "id"),
    Index("ix_runs_queue", "project_id", text("priority DESC"), "queued_at", postgresql_where=text("phase = 'queued'")),
    Index("ix_runs_phase", "phase", postgresql_where=text("phase <> 'done'")),
    Index("ix_runs_evaluation", "evaluation_id", "agent_id", "task_id",
          postgresql_where=text("evaluation_id is not null")),
    Index("ix_runs_evaluation_queue", "evaluation_id", "agent_id", text("priority DESC"), "queued_at", "id",
          postgresql_where=text("phase = 'queued' and evaluation_id is not null")),
    Index("ix_runs_order", "project_id", "evaluation_id", text("priority DESC"), "queued_at", "id",
          postgresql_where=text("phase = 'queued'")),
    Index("ix_runs_deliverable", "deliverable_digest", postgresql_where=text("deliverable_digest is not null")),
    postgresql_with={"fillfactor": 70},  # every append updates its run: leave room for that on the page
)  # fmt: skip

attempts = Table(
    "attempts", metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("n", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("host_id", Text, nullable=False),
    Column("sandbox_id", Text),
    Column("runtime", Text),
    Column("environment_image", Text), Column("kit_image", Text),  # content-hash tags or ids
    Column("argv", JSONB), Column("env", JSONB),  # env redacted
    Column("attestation", JSONB),
    # Digests of prompt template and rendered prompt, resolved effort, configuration files, the program's own usage.
    Column("provenance", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("ended_because", Text),
    Column("evidence", JSONB),
    Column("logs", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # stream -> {bytes, log_bytes, sha256}
    Column("offsets", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # stream -> stored bytes
    created(), time("bound_at"), time("started_at"), time("deadline_at"), time("ended_at"), time("collected_at"),
    time("released_at"),
    PrimaryKeyConstraint("run_id", "n"),
    Index("ix_attempts_host", "host_id", postgresql_where=text("state not in ('released', 'lost')")),
    Index("ix_attempts_sandbox", "sandbox_id"),
)  # fmt: skip

run_events = Table(
    "run_events", metadata,
    Column("run_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_offset", BigInteger, nullable=False),
    Column("ts", DateTime(timezone=True), nullable=False),
    Column("type", Text, nullable=False),
    Column("v", SmallInteger, nullable=False, server_default="1"),
    Column("payload", JSONB, nullable=False),
    PrimaryKeyConstraint("run_id", "seq"),
    UniqueConstraint("run_id", "attempt", "source", "source_offset", name="uq_run_events_source"),
    postgresql_partition_by="HASH (run_id)",
)  # fmt: skip

artifacts = Table(
    "artifacts", metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("path", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", Text), Column("mime", Text), Column("link_target", Text), Column("mtime", DOUBLE),
    PrimaryKeyConstraint("run_id", "position"),
    Index("ix_artifacts_path", "run_id", text("md5(path)")),
)  # fmt: skip

hosts = Table(
    "hosts", metadata,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),  # up | draining | lost
    Column("epoch", Text, nullable=False),  # one per worker process
    Column("slots", Integer, nullable=False),
    Column("slots_limit", Integer),  # an operator's lower limit
    Column("cordoned", Boolean, nullable=False, server_default=text("false")),  # takes no new run
    Column("runtimes", ARRAY(Text), nullable=False),
    Column("environments", ARRAY(Text), nullable=False),
    Column("labels", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("facts", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    created(),
    Column("beat_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
)  # fmt: skip

gradings = Table(
    "gradings", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("deliverable_digest", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("method_version", Text, nullable=False),
    Column("settings", JSONB, nullable=False),
    Column("settings_digest", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("primary", Boolean, nullable=False),
    Column("round", Integer, nullable=False, server_default="1"),
    Column("vote", Integer, nullable=False, server_default="1"),
    Column("state", Text, nullable=False),  # VerdictState
    Column("score", DOUBLE), Column("max_score", DOUBLE),
    Column("cause", Text),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    # Of version 0.1, neither read nor written any more: criteria are rows of grading_criteria.
    Column("criteria", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("detail", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # the method's own summary
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("queue", Text, nullable=False, server_default="rooms"),  # GradingQueue
    Column("priority", Integer, nullable=False, server_default="0"),  # higher first
    time("not_before"),  # put off until then
    Column("put_offs", Integer, nullable=False, server_default="0"),
    Column("regrade_id", Text),
    created(), time("started_at"), time("graded_at"),
    UniqueConstraint("run_id", "deliverable_digest", "method", "method_version", "settings_digest", "round", "vote",
                     name="uq_gradings_once"),
    Index("ix_gradings_open", "created_at", postgresql_where=text("state in ('pending', 'grading')")),
    Index("ix_gradings_run", "run_id"),
)  # fmt: skip

grading_criteria = Table(
    "grading_criteria", metadata,
    Column("grading_id", Text, ForeignKey("gradings.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("criterion", Text, nullable=False),  # id within the method: a test's, a rubric's …
    Column("passed", Boolean),  # null = not decided
    Column("score", DOUBLE), Column("max_score", DOUBLE),
    Column("cause", Text),  # why it did not pass, typed
    Column("reason", Text),  # in words
    Column("detail", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    created(),
    PrimaryKeyConstraint("grading_id", "position"),
)  # fmt: skip

integrity_reports = Table(
    "integrity_reports", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("digest", Text, nullable=False),  # of the deliverable
    Column("version", Text, nullable=False),  # of what makes it
    Column("state", Text, nullable=False, server_default="pending"),  # pending | ready | unavailable
    Column("queued", Boolean, nullable=False, server_default=text("false")),  # no grading will make it: a job must
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("cause", Text),  # of unavailable
    Column("problems", Integer),  # files with problems
    Column("report", JSONB),
    created(),
    UniqueConstraint("project_id", "digest", "version", name="uq_integrity_reports_once"),
    Index("ix_integrity_reports_queued", "created_at", postgresql_where=text("queued")),
)  # fmt: skip

idempotency_keys = Table(
    "idempotency_keys", metadata,
    project(),
    Column("key", String(200), nullable=False),
    Column("route", Text, nullable=False),
    Column("body_hash", Text, nullable=False),
    Column("status", Integer),  # null = in progress
    Column("response", JSONB),
    created(),
    PrimaryKeyConstraint("project_id", "route", "key"),
)  # fmt: skip

audit_log = Table(
    "audit_log", metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    project(),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    created(),
)  # fmt: skip

"""Tables of evaluations: agents and tasks with their counts, what people did to them, invalidations and notes of runs.

The counts are kept by the database (function ``count_run`` of migration 0007), in the transaction that changes the run: at its
end, so that the one row is locked for as short as can be. Whoever inserts runs of an evaluation counts them himself.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from service.store.tables import created, metadata, project, time

_EMPTY = text("'{}'::jsonb")

evaluations = Table(
    "evaluations", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="draft"),  # EvaluationState
    Column("spec", JSONB, nullable=False),  # EvaluationSpec as it was asked for
    Column("resolved", JSONB, nullable=False),  # what it means, by digests: enough to make it again
    Column("benchmark_id", Text),  # null: tasks without one
    Column("plan", Text, nullable=False),  # name@version
    Column("seed", BigInteger, nullable=False, server_default="0"),
    Column("total", Integer, nullable=False, server_default="0"),  # runs that exist
    Column("counts", JSONB, nullable=False, server_default=_EMPTY),  # phase | outcome | ended_because -> value -> runs
    Column("estimate", JSONB, nullable=False, server_default=_EMPTY),
    Column("preflight", JSONB),  # what the last one found, by agent
    Column("spend", JSONB, nullable=False, server_default=_EMPTY),  # agents_usd, judges_usd, as of
    Column("budget", JSONB, nullable=False, server_default=_EMPTY),  # EvaluationBudget as it is now
    Column("stop_rules", JSONB, nullable=False, server_default=_EMPTY),
    Column("concurrency", JSONB, nullable=False, server_default=_EMPTY),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("hold", JSONB(none_as_null=True)),  # of the whole: reason, detail, since
    Column("labels", JSONB, nullable=False, server_default=_EMPTY),
    Column("notes", Text, nullable=False, server_default=""),
    Column("author", Text, nullable=False),  # API token
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(), time("started_at"), time("ended_at"), time("updated_at"),
    Index("ix_evaluations_project_created", "project_id", "created_at", "id"),
    Index("ix_evaluations_open", "created_at", postgresql_where=text("state in ('checking', 'running', 'stopped')")),
    postgresql_with={"fillfactor": 50},  # updated by every change of its runs
)  # fmt: skip

evaluation_agents = Table(
    "evaluation_agents", metadata,
    Column("evaluation_id", Text, ForeignKey("evaluations.id", ondelete="CASCADE"), nullable=False),
    Column("agent_id", Text, ForeignKey("agents.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("samples", Integer, nullable=False),
    Column("settings", JSONB, nullable=False, server_default=_EMPTY),  # RunSettings, laid over the evaluation's
    Column("total", Integer, nullable=False, server_default="0"),
    Column("counts", JSONB, nullable=False, server_default=_EMPTY),
    Column("hold", JSONB(none_as_null=True)),  # stop rule or a person
    time("rules_from"),  # stop rules look at runs that ended later: set by a release
    created(),
    PrimaryKeyConstraint("evaluation_id", "agent_id"),
    postgresql_with={"fillfactor": 50},
)  # fmt: skip

evaluation_tasks = Table(
    "evaluation_tasks", metadata,
    Column("evaluation_id", Text, ForeignKey("evaluations.id", ondelete="CASCADE"), nullable=False),
    Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("item_key", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="ok"),  # ItemStatus when it was drafted
    PrimaryKeyConstraint("evaluation_id", "task_id"),
)  # fmt: skip

evaluation_log = Table(
    "evaluation_log", metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("evaluation_id", Text, ForeignKey("evaluations.id", ondelete="CASCADE"), nullable=False),
    Column("actor", Text, nullable=False),  # API token, or the process that did it
    Column("action", Text, nullable=False),
    Column("detail", JSONB, nullable=False, server_default=_EMPTY),
    created(),
    Index("ix_evaluation_log_evaluation", "evaluation_id", "id"),
)  # fmt: skip

run_invalidations = Table(
    "run_invalidations", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("author", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("outcome", Text),  # that the run had before
    created(), time("revoked_at"), Column("revoked_by", Text),
    Index("ix_run_invalidations_run", "run_id"),
    Index("uq_run_invalidations_open", "run_id", unique=True, postgresql_where=text("revoked_at is null")),
)  # fmt: skip

run_notes = Table(
    "run_notes", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("seq", BigInteger),  # of the event that it is about; null: the run
    Column("author", Text, nullable=False),
    Column("body", Text, nullable=False, server_default=""),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    created(),
    Index("ix_run_notes_run", "run_id", "created_at"),
    Index("ix_run_notes_project", "project_id", "created_at"),
)  # fmt: skip

contamination_scans = Table(
    "contamination_scans", metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("claimed_at", created().type, nullable=False, server_default=func.clock_timestamp()),
    time("scanned_at"),  # null: on its way
    Column("version", Integer),  # domain.contamination.VERSION
    Column("marks", Integer),  # what was looked for; 0: the task has nothing that can be
    Column("scanned_bytes", BigInteger), Column("cut", Boolean, nullable=False, server_default=text("false")),
    Column("hits", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
)  # fmt: skip

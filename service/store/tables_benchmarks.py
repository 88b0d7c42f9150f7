"""Tables of benchmarks, and of the operations that make them and other long work."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import created, metadata, project, time

benchmarks = Table(
    "benchmarks", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("manifest", JSONB, nullable=False),  # without its items
    Column("facets", JSONB, nullable=False, server_default=text("'{}'::jsonb")),  # summary over its tasks
    Column("derived", JSONB(none_as_null=True)),  # parent, rule and what the rule met; null: imported
    Column("labels", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(), time("updated_at"),
    UniqueConstraint("project_id", "name", "version"),
    Index("ix_benchmarks_project_created", "project_id", "created_at", "id"),
)  # fmt: skip

benchmark_items = Table(
    "benchmark_items", metadata,
    Column("benchmark_id", Text, ForeignKey("benchmarks.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("key", Text, nullable=False),  # the item's id in its source
    Column("task_id", Text, ForeignKey("tasks.id")),  # null: quarantined, no task could be made
    Column("status", Text, nullable=False),  # ok | disputed | quarantined
    Column("problems", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("checked", JSONB),  # what `benchmarks check` found: {state: ok | suspect | broken, …}
    PrimaryKeyConstraint("benchmark_id", "position"),
    UniqueConstraint("benchmark_id", "key"),
    Index("ix_benchmark_items_task", "task_id"),
)  # fmt: skip

operations = Table(
    "operations", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),  # queued | running | succeeded | failed | cancelled
    Column("spec", JSONB, nullable=False),
    Column("done", BigInteger, nullable=False, server_default="0"),
    Column("total", BigInteger),
    Column("unit", Text, nullable=False, server_default="items"),
    Column("log", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("result", JSONB), Column("problem", JSONB),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(), time("started_at"), time("ended_at"), time("updated_at"), time("cancel_requested_at"),
    Index("ix_operations_project_created", "project_id", "created_at", "id"),
    Index("ix_operations_open", "created_at", postgresql_where=text("state in ('queued', 'running')")),
)  # fmt: skip

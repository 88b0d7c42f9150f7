"""Tables of forecasts: sets with their tasks, and what forecasters said."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import DOUBLE, created, metadata, project, time

_EMPTY = text("'{}'::jsonb")

forecast_sets = Table(
    "forecast_sets", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="draft"),  # SurveyState
    Column("spec", JSONB, nullable=False),  # ForecastSetSpec as it was asked for
    Column("benchmark_id", Text),  # null: tasks without one
    Column("agent_id", Text),  # described; null: none of this installation
    Column("template", Text, nullable=False),
    Column("template_sha256", Text, nullable=False),
    Column("total", Integer, nullable=False, server_default="0"),  # to be asked
    Column("ok", Integer, nullable=False, server_default="0"),
    Column("excluded", Integer, nullable=False, server_default="0"),
    Column("failed", Integer, nullable=False, server_default="0"),
    Column("imported", Integer, nullable=False, server_default="0"),  # of the ok ones
    Column("estimate", JSONB, nullable=False, server_default=_EMPTY),
    Column("operation_id", Text),  # latest
    Column("stopped_because", Text),
    Column("labels", JSONB, nullable=False, server_default=_EMPTY),
    Column("author", Text, nullable=False),  # API token
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(), time("started_at"), time("ended_at"), time("updated_at"),
    Index("ix_forecast_sets_project_created", "project_id", "created_at", "id"),
)  # fmt: skip

forecast_set_tasks = Table(
    "forecast_set_tasks", metadata,
    Column("set_id", Text, ForeignKey("forecast_sets.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
    Column("item_key", Text),
    PrimaryKeyConstraint("set_id", "position"),
    UniqueConstraint("set_id", "task_id", name="uq_forecast_set_tasks_task"),
)  # fmt: skip

forecasts = Table(
    "forecasts", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("set_id", Text, ForeignKey("forecast_sets.id", ondelete="CASCADE"), nullable=False),
    Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
    Column("forecaster", Text, nullable=False),  # key
    Column("prompt", Text, nullable=False),  # key
    Column("variant", Text), Column("with_reason", Boolean), Column("system", Text),  # null: imported
    Column("model", Text), Column("reported_model", Text),
    Column("source", Text, nullable=False, server_default="asked"),  # asked | imported
    Column("state", Text, nullable=False),  # ForecastState
    Column("p_hat", DOUBLE),
    Column("context_dependence", SmallInteger), Column("verifiability", SmallInteger),
    Column("autonomy_horizon", SmallInteger), Column("tool_credential_surface", SmallInteger),
    Column("deliverable_modality", SmallInteger),
    Column("reason", Text),
    Column("asks", SmallInteger, nullable=False, server_default="0"),
    Column("cause", Text),
    Column("template_sha256", Text), Column("rendered_sha256", Text),
    Column("usage", JSONB(none_as_null=True)),
    Column("cost_usd", Numeric),
    time("declared_at"),  # as the maker of an imported one says
    created(),  # when it was recorded: what made_before_attempt goes by
    UniqueConstraint("set_id", "task_id", "forecaster", "prompt", name="uq_forecasts_one"),
    Index("ix_forecasts_set_created", "set_id", "created_at", "id"),
    Index("ix_forecasts_task", "task_id"),
)  # fmt: skip

"""Create forecast sets and their forecasts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
NOW = sa.text("clock_timestamp()")
EMPTY = sa.text("'{}'::jsonb")
TABLES = ("forecasts", "forecast_set_tasks", "forecast_sets")


def upgrade() -> None:
    _create_sets()
    _create_tasks()
    _create_forecasts()
    op.execute(
        "CREATE TRIGGER raise_revision BEFORE UPDATE ON forecast_sets FOR EACH ROW EXECUTE FUNCTION raise_revision()"
    )


def downgrade() -> None:
    for name in TABLES:
        op.drop_table(name)


def _project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{table}_project_id_projects")


def _of(table: str, column: str, other: str, ondelete: str | None = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete=ondelete)


def _create_sets() -> None:
    op.create_table(
        "forecast_sets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("benchmark_id", sa.Text()),
        sa.Column("agent_id", sa.Text()),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("template_sha256", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), server_default="0", nullable=False)
            for name in ("total", "ok", "excluded", "failed", "imported")
        ),
        sa.Column("estimate", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("operation_id", sa.Text()),
        sa.Column("stopped_because", sa.Text()),
        sa.Column("labels", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *(sa.Column(name, TIME) for name in ("started_at", "ended_at", "updated_at")),
        _project("forecast_sets"),
        sa.PrimaryKeyConstraint("id", name="pk_forecast_sets"),
    )
    op.create_index("ix_forecast_sets_project_created", "forecast_sets", ["project_id", "created_at", "id"])


def _create_tasks() -> None:
    op.create_table(
        "forecast_set_tasks",
        sa.Column("set_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("item_key", sa.Text()),
        _of("forecast_set_tasks", "set_id", "forecast_sets"),
        _of("forecast_set_tasks", "task_id", "tasks", None),
        sa.PrimaryKeyConstraint("set_id", "position", name="pk_forecast_set_tasks"),
        sa.UniqueConstraint("set_id", "task_id", name="uq_forecast_set_tasks_task"),
    )


def _create_forecasts() -> None:
    op.create_table(
        "forecasts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("set_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("forecaster", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text()),
        sa.Column("with_reason", sa.Boolean()),
        sa.Column("system", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("reported_model", sa.Text()),
        sa.Column("source", sa.Text(), server_default="asked", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("p_hat", sa.Double[float]()),
        *(
            sa.Column(name, sa.SmallInteger())
            for name in (
                "context_dependence", "verifiability", "autonomy_horizon", "tool_credential_surface",
                "deliverable_modality",
            )
        ),
        sa.Column("reason", sa.Text()),
        sa.Column("asks", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("cause", sa.Text()),
        sa.Column("template_sha256", sa.Text()),
        sa.Column("rendered_sha256", sa.Text()),
        sa.Column("usage", JSONB()),
        sa.Column("cost_usd", sa.Numeric()),
        sa.Column("declared_at", TIME),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("forecasts"),
        _of("forecasts", "set_id", "forecast_sets"),
        _of("forecasts", "task_id", "tasks", None),
        sa.PrimaryKeyConstraint("id", name="pk_forecasts"),
        sa.UniqueConstraint("set_id", "task_id", "forecaster", "prompt", name="uq_forecasts_one"),
    )  # fmt: skip
    op.create_index("ix_forecasts_set_created", "forecasts", ["set_id", "created_at", "id"])
    op.create_index("ix_forecasts_task", "forecasts", ["task_id"])

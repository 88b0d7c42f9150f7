"""Create pauses of people's runs, and what people are asked to confirm."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    _create_pauses()
    _create_confirmations()


def downgrade() -> None:
    op.drop_table("confirmations")
    op.drop_table("pauses")


def _create_pauses() -> None:
    op.create_table(
        "pauses",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_pauses_project_id_projects"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_pauses_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "attempt", "n", name="pk_pauses"),
    )


def _create_confirmations() -> None:
    op.create_table(
        "confirmations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("checks", JSONB(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("decided_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_confirmations_project_id_projects"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_confirmations_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_confirmations"),
        sa.UniqueConstraint("run_id", "attempt", "key", name="uq_confirmations_run_id"),
    )

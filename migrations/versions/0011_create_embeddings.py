"""Create embeddings of tasks' texts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "embeddings",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("project_id", "task_id", "model")),
        sa.Column("asked_dimensions", sa.Integer(), nullable=False),
        sa.Column("reported_model", sa.Text()),
        sa.Column("text_sha256", sa.Text(), nullable=False),
        sa.Column("vector", JSONB(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_embeddings_project_id_projects"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_embeddings_task_id_tasks", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id", "task_id", "model", "asked_dimensions", name="pk_embeddings"),
    )
    op.create_index("ix_embeddings_task", "embeddings", ["task_id"])


def downgrade() -> None:
    op.drop_table("embeddings")

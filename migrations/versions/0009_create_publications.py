"""Create publications."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "publications",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "project_id", "name")),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("public", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("archive_sha256", sa.Text(), nullable=False),
        sa.Column("archive_bytes", sa.BigInteger(), nullable=False),
        sa.Column("report_sha256", sa.Text(), nullable=False),
        sa.Column("shown_sha256", sa.Text(), nullable=False),
        sa.Column("shown_bytes", sa.BigInteger(), nullable=False),
        sa.Column("page_sha256", sa.Text(), nullable=False),
        sa.Column("page_bytes", sa.BigInteger(), nullable=False),
        sa.Column("summary", JSONB(), nullable=False),
        sa.Column("withdrawn", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("updated_at", TIME),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_publications_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_publications"),
        sa.UniqueConstraint("project_id", "name", "number", name="uq_publications_number"),
        sa.UniqueConstraint("project_id", "operation_id", "name", name="uq_publications_operation"),
    )
    op.create_index("ix_publications_project_created", "publications", ["project_id", "created_at", "id"])
    op.execute(
        "CREATE TRIGGER raise_revision BEFORE UPDATE ON publications FOR EACH ROW EXECUTE FUNCTION raise_revision()"
    )


def downgrade() -> None:
    op.drop_table("publications")

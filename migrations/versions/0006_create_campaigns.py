"""Create campaigns with their items, raters, assignments and preferences; the feed follows campaigns."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
DOUBLE = sa.Double[float]()
NOW = sa.text("clock_timestamp()")
EMPTY = sa.text("'{}'::jsonb")
NONE = sa.text("'[]'::jsonb")
TABLES = ("preferences", "rating_assignments", "rater_sessions", "raters", "campaign_items", "campaigns")


def upgrade() -> None:
    _create_campaigns()
    _create_items()
    _create_raters()
    _create_assignments()
    _create_preferences()
    op.execute(
        "CREATE TRIGGER raise_revision BEFORE UPDATE ON campaigns FOR EACH ROW EXECUTE FUNCTION raise_revision()"
    )
    op.execute(
        "CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON campaigns "
        "FOR EACH ROW EXECUTE FUNCTION record_change('campaign')"
    )


def downgrade() -> None:
    for name in TABLES:
        op.drop_table(name)
    op.execute("DELETE FROM changes WHERE kind = 'campaign'")


def _project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{table}_project_id_projects")


def _of(table: str, column: str, other: str, ondelete: str | None = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete=ondelete)


def _create_campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("instruction", sa.Text(), nullable=False),
        sa.Column("instruction_version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("instruction_sha256", sa.Text(), nullable=False),
        sa.Column("labels", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("decided", sa.Integer(), server_default="0", nullable=False),
        sa.Column("short", JSONB(), server_default=NONE, nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("updated_at", TIME),
        sa.Column("due_at", TIME),
        sa.Column("opened_at", TIME),
        sa.Column("closed_at", TIME),
        _project("campaigns"),
        sa.PrimaryKeyConstraint("id", name="pk_campaigns"),
    )
    op.create_index("ix_campaigns_project", "campaigns", ["project_id", "created_at"])


def _create_items() -> None:
    op.create_table(
        "campaign_items",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("other_run_id", sa.Text()),
        sa.Column("categories", ARRAY(sa.Text()), nullable=False),
        sa.Column("gold", JSONB()),
        sa.Column("audited", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("want", sa.Text()),
        sa.Column("wanted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("verdict", JSONB()),
        sa.Column("grading_id", sa.Text()),
        sa.Column("identifying", JSONB()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("decided_at", TIME),
        _project("campaign_items"),
        _of("campaign_items", "campaign_id", "campaigns"),
        _of("campaign_items", "task_id", "tasks", None),
        _of("campaign_items", "run_id", "runs"),
        _of("campaign_items", "other_run_id", "runs"),
        sa.PrimaryKeyConstraint("id", name="pk_campaign_items"),
        sa.UniqueConstraint("campaign_id", "position", name="uq_campaign_items_position"),
    )
    op.create_index("ix_campaign_items_run", "campaign_items", ["run_id"])
    op.create_index("ix_campaign_items_other_run", "campaign_items", ["other_run_id"])


def _create_raters() -> None:
    op.create_table(
        "raters",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("pseudonym", sa.Text(), nullable=False),
        sa.Column("categories", ARRAY(sa.Text()), nullable=False),
        sa.Column("judge", JSONB()),
        sa.Column("token_id", sa.Text()),
        sa.Column("state", sa.Text(), server_default="invited", nullable=False),
        sa.Column("qualified", sa.Boolean()),
        sa.Column("invitation_hash", sa.LargeBinary()),
        sa.Column("invitation_expires_at", TIME),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("joined_at", TIME),
        sa.Column("removed_at", TIME),
        _project("raters"),
        _of("raters", "campaign_id", "campaigns"),
        sa.PrimaryKeyConstraint("id", name="pk_raters"),
        sa.UniqueConstraint("campaign_id", "pseudonym", name="uq_raters_pseudonym"),
        sa.UniqueConstraint("invitation_hash", name="uq_raters_invitation"),
    )
    op.create_index("ix_raters_token", "raters", ["token_id"])
    op.create_table(
        "rater_sessions",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("rater_id", sa.Text(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        _of("rater_sessions", "rater_id", "raters"),
        sa.PrimaryKeyConstraint("hash", name="pk_rater_sessions"),
    )


def _create_assignments() -> None:
    op.create_table(
        "rating_assignments",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Text(), nullable=False),
        sa.Column("item_id", sa.Text(), nullable=False),
        sa.Column("rater_id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("swapped", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("leased_until", TIME),
        sa.Column("started_at", TIME, server_default=NOW, nullable=False),
        sa.Column("active_s", DOUBLE, server_default="0", nullable=False),
        sa.Column("wall_s", DOUBLE, server_default="0", nullable=False),
        sa.Column("rating", JSONB()),
        sa.Column("rating_digest", sa.Text()),
        sa.Column("client_id", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("instruction_version", sa.Integer()),
        sa.Column("instruction_sha256", sa.Text()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("submitted_at", TIME),
        _project("rating_assignments"),
        _of("rating_assignments", "campaign_id", "campaigns"),
        _of("rating_assignments", "item_id", "campaign_items"),
        _of("rating_assignments", "rater_id", "raters"),
        sa.PrimaryKeyConstraint("id", name="pk_rating_assignments"),
        sa.UniqueConstraint("item_id", "rater_id", name="uq_rating_assignments_once"),
    )
    op.create_index("ix_rating_assignments_campaign", "rating_assignments", ["campaign_id", "state"])
    op.create_index("ix_rating_assignments_rater", "rating_assignments", ["rater_id"])


def _create_preferences() -> None:
    op.create_table(
        "preferences",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Text(), nullable=False),
        sa.Column("item_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("first_run_id", sa.Text(), nullable=False),
        sa.Column("second_run_id", sa.Text()),
        sa.Column("first_agent_id", sa.Text(), nullable=False),
        sa.Column("second_agent_id", sa.Text()),
        sa.Column("value", DOUBLE, nullable=False),
        sa.Column("choices", JSONB(), nullable=False),
        sa.Column("combination", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("preferences"),
        _of("preferences", "campaign_id", "campaigns"),
        _of("preferences", "item_id", "campaign_items"),
        sa.PrimaryKeyConstraint("id", name="pk_preferences"),
        sa.UniqueConstraint("item_id", name="uq_preferences_item"),
    )
    op.create_index("ix_preferences_campaign", "preferences", ["campaign_id"])

"""Create annotation sets, what was said in them and what it amounts to; benchmarks know what they are derived from."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
NOW = sa.text("clock_timestamp()")
EMPTY = sa.text("'{}'::jsonb")
NOTHING = sa.text("'[]'::jsonb")
TABLES = ("annotation_values", "annotations", "annotation_targets", "annotation_sets")
COUNTS = ("total", "answered", "refused", "unreadable", "excluded", "failed", "brought")


def upgrade() -> None:
    _create_sets()
    _create_targets()
    _create_annotations()
    _create_values()
    op.add_column("benchmarks", sa.Column("derived", JSONB()))
    op.execute(
        "CREATE TRIGGER raise_revision BEFORE UPDATE ON annotation_sets FOR EACH ROW EXECUTE FUNCTION raise_revision()"
    )


def downgrade() -> None:
    op.drop_column("benchmarks", "derived")
    for name in TABLES:
        op.drop_table(name)


def _project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{table}_project_id_projects")


def _of(table: str, column: str, other: str, ondelete: str | None = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete=ondelete)


def _create_sets() -> None:
    op.create_table(
        "annotation_sets",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "project_id", "name")),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="draft", nullable=False),
        sa.Column("spec", JSONB(), nullable=False),
        sa.Column("benchmark_id", sa.Text()),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("template_sha256", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Integer(), server_default="0", nullable=False) for name in COUNTS),
        sa.Column("estimate", JSONB(), server_default=EMPTY, nullable=False),
        *(sa.Column(name, sa.Text()) for name in ("operation_id", "stopped_because", "digest", "accepted_by")),
        sa.Column("labels", JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        *(sa.Column(name, TIME) for name in ("started_at", "ended_at", "accepted_at", "updated_at")),
        _project("annotation_sets"),
        sa.PrimaryKeyConstraint("id", name="pk_annotation_sets"),
        sa.UniqueConstraint("project_id", "name", "version", name="uq_annotation_sets_version"),
    )
    op.create_index("ix_annotation_sets_project_created", "annotation_sets", ["project_id", "created_at", "id"])


def _create_targets() -> None:
    op.create_table(
        "annotation_targets",
        sa.Column("set_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text()) for name in ("task_id", "item_key", "text_sha256")),
        _of("annotation_targets", "set_id", "annotation_sets"),
        _of("annotation_targets", "task_id", "tasks", None),
        sa.PrimaryKeyConstraint("set_id", "position", name="pk_annotation_targets"),
        sa.UniqueConstraint("set_id", "target", name="uq_annotation_targets_target"),
    )


def _create_annotations() -> None:
    op.create_table(
        "annotations",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "project_id", "set_id", "target", "annotator")),
        sa.Column("n", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("value", JSONB()),
        *(sa.Column(name, sa.Text()) for name in ("reason", "model", "reported_model", "author")),
        sa.Column("asks", sa.SmallInteger(), server_default="0", nullable=False),
        *(sa.Column(name, sa.Text()) for name in ("cause", "rendered_sha256")),
        sa.Column("usage", JSONB()),
        sa.Column("cost_usd", sa.Numeric()),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        _project("annotations"),
        _of("annotations", "set_id", "annotation_sets"),
        sa.PrimaryKeyConstraint("id", name="pk_annotations"),
        sa.UniqueConstraint("set_id", "target", "annotator", "n", name="uq_annotations_one"),
    )
    op.create_index("ix_annotations_set_created", "annotations", ["set_id", "created_at", "id"])


def _create_values() -> None:
    op.create_table(
        "annotation_values",
        sa.Column("set_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text()),
        sa.Column("value", JSONB()),
        sa.Column("votes", sa.Integer(), nullable=False),
        sa.Column("agreeing", sa.Integer(), nullable=False),
        sa.Column("tied", JSONB(), server_default=NOTHING, nullable=False),
        sa.Column("by_person", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        _of("annotation_values", "set_id", "annotation_sets"),
        _of("annotation_values", "task_id", "tasks", None),
        sa.PrimaryKeyConstraint("set_id", "target", name="pk_annotation_values"),
    )
    op.create_index("ix_annotation_values_task", "annotation_values", ["task_id", "set_id"])

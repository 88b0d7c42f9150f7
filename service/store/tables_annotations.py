"""Tables of annotations: sets with their targets, what was said of each, and what that amounts to."""

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

from service.store.tables import created, metadata, project, time

_EMPTY = text("'{}'::jsonb")

annotation_sets = Table(
    "annotation_sets", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("name", Text, nullable=False),  # of the facet
    Column("version", Integer, nullable=False),  # counted on within the name
    Column("about", Text, nullable=False),  # Target
    Column("state", Text, nullable=False, server_default="draft"),  # SurveyState
    Column("spec", JSONB, nullable=False),  # AnnotationSetSpec without its texts
    Column("benchmark_id", Text),
    Column("template", Text, nullable=False),
    Column("template_sha256", Text, nullable=False),
    Column("total", Integer, nullable=False, server_default="0"),  # votes to be asked for
    Column("answered", Integer, nullable=False, server_default="0"),
    Column("refused", Integer, nullable=False, server_default="0"),
    Column("unreadable", Integer, nullable=False, server_default="0"),
    Column("excluded", Integer, nullable=False, server_default="0"),
    Column("failed", Integer, nullable=False, server_default="0"),
    Column("brought", Integer, nullable=False, server_default="0"),  # by people, of the answered ones
    Column("estimate", JSONB, nullable=False, server_default=_EMPTY),
    Column("operation_id", Text),  # latest
    Column("stopped_because", Text),
    Column("digest", Text),  # of the values that were accepted
    Column("accepted_by", Text),  # API token
    Column("labels", JSONB, nullable=False, server_default=_EMPTY),
    Column("author", Text, nullable=False),  # API token
    Column("revision", BigInteger, nullable=False, server_default="1"),
    created(), time("started_at"), time("ended_at"), time("accepted_at"), time("updated_at"),
    UniqueConstraint("project_id", "name", "version", name="uq_annotation_sets_version"),
    Index("ix_annotation_sets_project_created", "project_id", "created_at", "id"),
)  # fmt: skip

annotation_targets = Table(
    "annotation_targets", metadata,
    Column("set_id", Text, ForeignKey("annotation_sets.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("target", Text, nullable=False),  # task id, run id or the text's own id
    Column("task_id", Text, ForeignKey("tasks.id")),  # null: not of tasks
    Column("item_key", Text), Column("text_sha256", Text),
    PrimaryKeyConstraint("set_id", "position"),
    UniqueConstraint("set_id", "target", name="uq_annotation_targets_target"),
)  # fmt: skip

annotations = Table(
    "annotations", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("set_id", Text, ForeignKey("annotation_sets.id", ondelete="CASCADE"), nullable=False),
    Column("target", Text, nullable=False),
    Column("annotator", Text, nullable=False),  # key of the model with its settings, or person
    Column("n", SmallInteger, nullable=False),  # vote, from 1
    Column("state", Text, nullable=False),  # AnnotationState
    Column("value", JSONB(none_as_null=True)),
    Column("reason", Text),
    Column("model", Text), Column("reported_model", Text),  # null: a person
    Column("author", Text),  # API token of a person's
    Column("asks", SmallInteger, nullable=False, server_default="0"),
    Column("cause", Text),
    Column("rendered_sha256", Text),
    Column("usage", JSONB(none_as_null=True)),
    Column("cost_usd", Numeric),
    created(),
    UniqueConstraint("set_id", "target", "annotator", "n", name="uq_annotations_one"),
    Index("ix_annotations_set_created", "set_id", "created_at", "id"),
)  # fmt: skip

annotation_values = Table(
    "annotation_values", metadata,
    Column("set_id", Text, ForeignKey("annotation_sets.id", ondelete="CASCADE"), nullable=False),
    Column("target", Text, nullable=False),
    Column("task_id", Text, ForeignKey("tasks.id")),
    Column("value", JSONB(none_as_null=True)),  # null: no answered vote, or a tie
    Column("votes", Integer, nullable=False),
    Column("agreeing", Integer, nullable=False),
    Column("tied", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("by_person", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("set_id", "target"),
    Index("ix_annotation_values_task", "task_id", "set_id"),
)  # fmt: skip

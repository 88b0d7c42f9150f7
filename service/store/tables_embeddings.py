"""Table of embeddings: vectors of tasks' texts."""

from sqlalchemy import Column, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import created, metadata, project

embeddings = Table(
    "embeddings", metadata,
    project(),
    Column("task_id", Text, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    Column("model", Text, nullable=False),  # name in the catalogue
    Column("asked_dimensions", Integer, nullable=False),  # 0: the model's own
    Column("reported_model", Text),
    Column("text_sha256", Text, nullable=False),  # of what was sent
    Column("vector", JSONB, nullable=False),  # list of numbers
    Column("operation_id", Text, nullable=False),  # it is forgotten before this is
    created(),
    PrimaryKeyConstraint("project_id", "task_id", "model", "asked_dimensions"),
    Index("ix_embeddings_task", "task_id"),
)  # fmt: skip

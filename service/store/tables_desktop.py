"""Tables of runs with a screen: pauses of a person's clock, and what a person is asked to confirm."""

from sqlalchemy import Column, ForeignKey, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB

from service.store.tables import created, metadata, project, time

pauses = Table(
    "pauses", metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("n", Integer, nullable=False),
    project(),
    created(), time("ended_at"),  # null: it goes on
    PrimaryKeyConstraint("run_id", "attempt", "n"),
)  # fmt: skip

confirmations = Table(
    "confirmations", metadata,
    Column("id", Text, primary_key=True),
    project(),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("key", Text, nullable=False),  # of the loop's step
    Column("state", Text, nullable=False, server_default="pending"),  # pending | acknowledged | denied
    Column("checks", JSONB, nullable=False),
    Column("intent", Text, nullable=False),
    Column("decided_by", Text),  # API token
    created(), time("decided_at"),
    UniqueConstraint("run_id", "attempt", "key"),
)  # fmt: skip

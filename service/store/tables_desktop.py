"""Tables of runs with a screen: pauses of a person's clock."""

from sqlalchemy import Column, ForeignKey, Integer, PrimaryKeyConstraint, Table, Text

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

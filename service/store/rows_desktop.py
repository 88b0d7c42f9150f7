"""Rows of runs with a screen."""

from dataclasses import dataclass
from datetime import datetime

from service.store.rows import Json, Row


@dataclass(frozen=True, slots=True)
class ConfirmationRow(Row):
    id: str
    run_id: str
    attempt: int
    state: str
    checks: list[Json]
    intent: str
    decided_by: str | None
    created_at: datetime
    decided_at: datetime | None

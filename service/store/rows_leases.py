"""The row of a remote driver's lease."""

from dataclasses import dataclass
from datetime import datetime

from service.store.rows import Json, Row


@dataclass(frozen=True, slots=True)
class LeaseRow(Row):
    run_id: str
    project_id: str
    attempt: int
    holder: str
    token_id: str | None
    secret_hash: bytes
    created_at: datetime
    beat_at: datetime | None
    expires_at: datetime
    finished_at: datetime | None
    finish: Json | None
    """status, summary, usage"""

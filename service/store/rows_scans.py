"""Row of a scan for contamination."""

from dataclasses import dataclass
from datetime import datetime

from service.store.rows import Json, Row


@dataclass(frozen=True, slots=True)
class ScanRow(Row):
    run_id: str
    scanned_at: datetime | None
    version: int | None
    marks: int | None
    """What was looked for; 0: the task has nothing that can be."""
    scanned_bytes: int | None
    cut: bool
    """Not everything could be looked at."""
    hits: list[Json]
    """kind, source (hidden file), where, excerpt (hidden text)."""

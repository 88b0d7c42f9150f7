"""What a process needs to decide gradings."""

from dataclasses import dataclass, field

from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.integrity import ReportContext
from service.lifecycle.judging import Judging
from service.lifecycle.underway import Underway
from service.sandboxes.rooms import Rooms
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.shared_locks import SharedLocks


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a grading that cannot be decided now waits, and for how long in all."""

    first_s: float = 10.0
    """Before the second start; doubled from one to the next."""
    longest_s: float = 900.0
    in_all_s: float = 86_400.0
    """Since the first start; then it has failed, with the cause of the last wait."""


@dataclass(frozen=True, slots=True)
class GradeContext:
    db: Database
    blobs: BlobStore
    crash: CrashPoints = field(default_factory=CrashPoints)
    tries: int = 3
    """Of one start, where a method or a disk failed."""
    first_pause_s: float = 0.2
    """Between them; doubled from one to the next."""
    database_patience_s: float = 600.0
    rooms: Rooms | None = None
    """Null where this machine has no engine: methods that need one then answer ``grader_unavailable``."""
    judging: Judging | None = None
    """Null where this process has no way to models: methods that need judges then answer so."""
    patience: Patience = field(default_factory=Patience)
    locks: SharedLocks = field(init=False)
    underway: Underway = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "locks", SharedLocks(self.db.url))
        object.__setattr__(self, "underway", Underway(self.db))

    @property
    def for_report(self) -> ReportContext:
        return ReportContext(self.db, self.blobs, self.rooms, self.database_patience_s)

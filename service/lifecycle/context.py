"""What every step gets: the store, the engine, timings. Made once per worker process by wiring."""

from dataclasses import dataclass, field
from pathlib import Path

from service.desktop.desktops import Desktops
from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.tasks import TaskManifest
from service.lifecycle.clock import Clock
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.ports import ModelAccess, NoModels, NoWarmPool, Sandboxes, WarmPool
from service.lifecycle.raw_log import Spool
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.events import EventLog
from service.store.notifications import Notifications
from service.store.rows import AttemptRow

Parts = tuple[TaskManifest, AgentSpec, ScaffoldManifest]
MOST_KNOWN = 64


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, all of them; tests run them in virtual time."""

    flush_s: float = 0.002
    """Least time between two writes of the same run's output; the launcher gathers for 5 ms before."""
    flush_flood_s: float = 0.25
    """The same, once output is only counted."""
    stop_scan_s: float = 15.0
    """Re-read of the stop flag, beside notifications (and beside the re-read when their connection was lost)."""
    sample_s: float = 10.0
    """Between two resource samples."""
    disk_scan_s: float = 1.0
    """Between two measurements of a workspace that has no hard quota."""
    inspect_s: float = 30.0
    """Between two questions to the engine whether the container runs; its death is noticed at once, by pidfd."""
    launcher_patience_s: float = 30.0
    """How long a running container whose launcher does not answer is waited for."""
    drain_s: float = 3.0
    """After a takeover past the deadline: time for an exit that happened before the deadline to be heard of."""
    database_patience_s: float = 600.0
    """How long one write is repeated while the database is away."""
    destroy_tries: int = 3
    retry_s: float = 0.5
    """First pause between two tries; doubles."""


@dataclass(frozen=True, slots=True)
class Context:
    db: Database
    notifications: Notifications
    log: EventLog
    blobs: BlobStore
    sandboxes: Sandboxes
    spool_dir: Path
    warm: WarmPool = field(default_factory=NoWarmPool)
    models: ModelAccess = field(default_factory=NoModels)
    desktops: Desktops = field(default_factory=Desktops)
    crash: CrashPoints = field(default_factory=CrashPoints)
    timing: Timing = field(default_factory=Timing)
    clock: Clock = field(default_factory=Clock)
    known: dict[tuple[str, str], Parts] = field(default_factory=dict[tuple[str, str], Parts])
    """(task id, agent id) → what they hold: immutable, so read once."""

    def spool(self, attempt: AttemptRow) -> Spool:
        return Spool(self.spool_dir / f"{attempt.run_id}-{attempt.n}")

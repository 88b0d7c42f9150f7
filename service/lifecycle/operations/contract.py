"""What the handler of a kind gets and gives.

A handler is repeated from its start after a crash: each of its steps finds what is there or makes it. It tells how far
it is between pieces of work that take a second or so, and that is where it learns that it is to stop.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from service.domain.operations import MAX_LOG_CHARS, MAX_LOG_LINES
from service.lifecycle.clock import Clock
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.own_side import OwnWay
from service.sandboxes.rooms import Rooms
from service.store import operations
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.rows import OperationRow

T = TypeVar("T")
REPORT_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class OperationContext:
    db: Database
    blobs: BlobStore
    crash: CrashPoints = field(default_factory=CrashPoints)
    tries: int = 3
    """Of one start, where something of ours failed."""
    first_pause_s: float = 1.0
    database_patience_s: float = 600.0
    provider_host: str = "127.0.0.1"
    """Where the gateway reaches this process, for the scripted provider of conformance runs."""
    gateway: OwnWay | None = None
    """Null: there is none, and models cannot be asked."""
    rooms: Rooms | None = None
    """Null: this machine has no engine."""

    async def in_transaction(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Do ``work``, again while the database is away. Raises Unavailable after the patience."""
        return await retrying(self.db, work, self.database_patience_s)


class JobCancelled(Exception):
    """Somebody asked for the operation's end: leave what is whole, undo what is not, and let this pass."""


class Job:
    """One operation at work."""

    def __init__(self, ctx: OperationContext, row: OperationRow) -> None:
        self.id = row.id
        self.project_id = row.project_id
        self.spec = row.spec
        self._ctx = ctx
        self._log = row.log
        self._unwritten = False
        self._reported_at = float("-inf")
        self._clock = Clock()

    def say(self, text: str) -> None:
        """Add a line to the log; the next report writes it. The oldest of more than 200 are dropped."""
        at = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._log = [*self._log, {"at": at, "text": text[:MAX_LOG_CHARS]}][-MAX_LOG_LINES:]
        self._unwritten = True

    async def report(self, done: int, total: int | None) -> None:
        """Tell how far it is; written at most four times a second, the end always. Raises JobCancelled, Unavailable."""
        now = time.monotonic()
        if now - self._reported_at < REPORT_EVERY_S and done != total:
            return
        self._reported_at = now
        log = self._log if self._unwritten else None

        async def write(tx: Tx) -> bool:
            return await operations.report(tx, self.id, done, total, log)

        if not await self._ctx.in_transaction(write):
            raise JobCancelled
        self._unwritten = False


Handler = Callable[[OperationContext, Job], Awaitable[dict[str, Any]]]
"""Returns the result. Raises JobCancelled, Expected (the client's doing: the operation's problem), anything else: ours."""

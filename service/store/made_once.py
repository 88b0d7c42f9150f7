"""What is made of a deliverable once per (project, deliverable, version of what makes it): reports, evidence documents.

One table has one kind. A row says whether the thing is there (``state``), whether a job must make it (``queued``) and how
often that was begun (``tries``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import ColumnElement, Executable, RowMapping, Table, and_, case, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.ids import new_id
from service.store.database import Tx
from service.store.phases import notify
from service.store.tables import runs

T = TypeVar("T")
PENDING, READY, UNAVAILABLE = "pending", "ready", "unavailable"
MOST = 1000
"""Open ones of one look."""


@dataclass(frozen=True, slots=True)
class MadeOnce(Generic[T]):
    """The rows of one kind; ``T`` is what a row is read as."""

    table: Table
    of: Callable[[RowMapping], T]
    prefix: str
    """Of ids."""
    version: Callable[[], str]
    """Of what makes them now."""
    unique: str
    """Name of the constraint on project, digest and version."""
    channel: str
    """Wakes the makers."""

    async def request(self, tx: Tx, project_id: str, digest: str, *, queued: bool) -> T:
        """Find or create a deliverable's under the present version; one that was unavailable is pending again.

        ``queued``: no grading will make it, so a job must. Wakes the makers.
        """
        c = self.table.c
        new = {"id": new_id(self.prefix), "project_id": project_id, "digest": digest, "version": self.version()}
        made = insert(self.table).values({**new, "queued": queued})
        open_ = c.state != READY
        again = {
            "state": case((open_, PENDING), else_=c.state),
            "cause": None,
            "tries": case((c.state == UNAVAILABLE, 0), else_=c.tries),
            "queued": or_(c.queued, and_(made.excluded.queued, open_)),
        }
        query = made.on_conflict_do_update(constraint=self.unique, set_=again).returning(self.table)
        row = (await tx.execute(query)).mappings().one()
        if row["queued"]:
            await notify(tx, self.channel, row["id"])
        return self.of(row)

    async def find(self, tx: Tx, project_id: str, digest: str) -> T | None:
        """Return a deliverable's to show: a finished one before all others, then the present version's."""
        c = self.table.c
        mine = (c.project_id == project_id, c.digest == digest)
        order = ((c.state == READY).desc(), (c.version == self.version()).desc(), c.created_at.desc())
        return await self.one(tx, select(self.table).where(*mine).order_by(*order).limit(1))

    async def present(self, tx: Tx, project_id: str, digest: str) -> T | None:
        """Return a deliverable's under the present version."""
        c = self.table.c
        mine = (c.project_id == project_id, c.digest == digest, c.version == self.version())
        return await self.one(tx, select(self.table).where(*mine))

    async def by_id(self, tx: Tx, id_: str) -> T | None:
        return await self.one(tx, select(self.table).where(self.table.c.id == id_))

    async def open_ids(self, tx: Tx) -> list[str]:
        """Return those that a job must make, oldest first, at most 1 000."""
        c = self.table.c
        return [*(await tx.execute(select(c.id).where(c.queued).order_by(c.created_at).limit(MOST))).scalars()]

    async def start(self, tx: Tx, id_: str) -> T | None:
        """Count a try and return the row as it then is; null if it is gone."""
        c = self.table.c
        return await self.one(
            tx, self.table.update().where(c.id == id_).values(tries=c.tries + 1).returning(self.table)
        )

    async def unqueue(self, tx: Tx, id_: str) -> None:
        await tx.execute(self.table.update().where(self.table.c.id == id_).values(queued=False))

    def unused(self, project_id: str, digest: str) -> list[ColumnElement[bool]]:
        """Return the conditions of a deliverable's rows where no run of the project has it (any more)."""
        c = self.table.c
        used = select(runs.c.id).where(runs.c.project_id == project_id, runs.c.deliverable_digest == digest).exists()
        return [c.project_id == project_id, c.digest == digest, ~used]

    async def one(self, tx: Tx, query: Executable) -> T | None:
        row = (await tx.execute(query)).mappings().one_or_none()
        return None if row is None else self.of(row)

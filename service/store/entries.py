"""Models and gateway services are kept alike: entries of a project, by name, that may have a credential.

Entries are replaced as a whole. A secret stays with the address that it was brought for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import RowMapping, Table, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Conflict, Invalid
from service.domain.ids import new_id
from service.domain.models import ModelSpec
from service.domain.services import ServiceSpec
from service.store import credentials
from service.store.catalogue import storable
from service.store.database import Tx

S = TypeVar("S", ModelSpec, ServiceSpec)
S_co = TypeVar("S_co", ModelSpec, ServiceSpec, covariant=True)


class Entry(Protocol[S_co]):
    """What the rows have in common."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def spec(self) -> S_co: ...
    @property
    def revision(self) -> int: ...
    @property
    def credential_id(self) -> str | None: ...


R = TypeVar("R", bound=Entry[Any])


@dataclass(frozen=True)
class Entries(Generic[S, R]):
    """The entries of one table. ``noun`` is what people call one; ``prefix`` begins its ids."""

    table: Table
    noun: str
    prefix: str
    row: Callable[[RowMapping], R]

    async def create(self, tx: Tx, project_id: str, spec: S, *, private: bool) -> tuple[R, bool]:
        """Return the entry and whether it is new; the same one again is found. Raises Conflict ``<noun>_exists``."""
        values = {"id": new_id(self.prefix), "project_id": project_id, "name": spec.name, "spec": storable(spec)}
        query = insert(self.table).values(**values, private=private).on_conflict_do_nothing().returning(self.table)
        row = (await tx.execute(query)).mappings().one_or_none()
        if row is not None:
            return self.row(row), True
        found = await self.find(tx, project_id, spec.name)
        if found is None or found.spec != spec:
            detail = f"there is another {self.noun} {spec.name!r}: replace it, or take another name"
            raise Conflict(f"{self.noun}_exists", detail)
        return found, False

    async def get(self, tx: Tx, project_id: str, entry_id: str) -> R | None:
        """Return the project's entry; null if there is none (or it is another project's)."""
        row = (await tx.execute(select(self.table).where(*self._mine(project_id, entry_id)))).mappings().one_or_none()
        return None if row is None else self.row(row)

    async def find(self, tx: Tx, project_id: str, name: str) -> R | None:
        """Return the project's entry of this name."""
        query = select(self.table).where(self.table.c.project_id == project_id, self.table.c.name == name)
        row = (await tx.execute(query)).mappings().one_or_none()
        return None if row is None else self.row(row)

    async def locked(self, tx: Tx, project_id: str, entry_id: str) -> R | None:
        """As :meth:`get`; nobody else changes it before the transaction ends."""
        query = select(self.table).where(*self._mine(project_id, entry_id)).with_for_update()
        row = (await tx.execute(query)).mappings().one_or_none()
        return None if row is None else self.row(row)

    async def replace(
        self, tx: Tx, project_id: str, entry_id: str, spec: S, *, private: bool, **columns: object
    ) -> R | None:
        """Replace what the entry says, and ``columns``; null if there is none.

        When the address changes, the secret is forgotten. Raises Invalid ``name_changed``: agents name it.
        """
        before = await self.locked(tx, project_id, entry_id)
        if before is None:
            return None
        if before.name != spec.name:
            raise Invalid("name_changed", f"agents name this {self.noun}: make a new one instead")
        kept: dict[str, Any] = {}
        if before.credential_id is not None and before.spec.base_url != spec.base_url:
            await credentials.drop(tx, before.credential_id)
            kept = {"credential_id": None}
        table = self.table
        query = table.update().where(*self._mine(project_id, entry_id))
        query = query.values(spec=storable(spec), private=private, revision=table.c.revision + 1, **columns, **kept)
        return self.row((await tx.execute(query.returning(table))).mappings().one())

    async def delete(self, tx: Tx, project_id: str, entry_id: str) -> bool:
        """Delete it with its secret; False if there is none."""
        query = self.table.delete().where(*self._mine(project_id, entry_id)).returning(self.table.c.credential_id)
        row = (await tx.execute(query)).one_or_none()
        if row is not None and row[0] is not None:
            await credentials.drop(tx, row[0])
        return row is not None

    def _mine(self, project_id: str, entry_id: str) -> Any:
        return self.table.c.project_id == project_id, self.table.c.id == entry_id

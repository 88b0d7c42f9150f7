"""Publications. Use it as ``from service.store import publications``."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from pydantic import TypeAdapter
from sqlalchemy import func, select, true

from service.domain.cleaning import clean_json
from service.domain.ids import new_id
from service.domain.publications import Withdrawn
from service.store import blob_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import Converters, Json, Row
from service.store.tables_publications import publications as table

OWNER = "publication"
_WITHDRAWN = TypeAdapter(list[Withdrawn])


@dataclass(frozen=True, slots=True)
class PublicationRow(Row):
    id: str
    project_id: str
    name: str
    number: int
    operation_id: str
    profile: str
    hidden: bool
    public: bool
    archive_sha256: str
    archive_bytes: int
    report_sha256: str
    shown_sha256: str
    shown_bytes: int
    page_sha256: str
    page_bytes: int
    summary: Json
    withdrawn: list[Withdrawn]
    author: str
    revision: int
    created_at: datetime
    updated_at: datetime | None
    CONVERT: ClassVar[Converters] = {"withdrawn": _WITHDRAWN.validate_python}


LISTING = Listing(
    table,
    PublicationRow.of,
    sorts_by(created_at=Sort(table.c.created_at)),
    {"name": one_of(table.c.name)},
    version=table.c.revision,
)


async def find(tx: Tx, project_id: str, name: str, operation_id: str) -> PublicationRow | None:
    """Return what was published of an export under a name."""
    return await _one(tx, table.c.project_id == project_id, table.c.name == name, table.c.operation_id == operation_id)


async def latest(tx: Tx, project_id: str, name: str) -> PublicationRow | None:
    """Return the newest of a name. Its number grows under a lock that the transaction keeps."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"publication {project_id} {name}", 0))))
    query = select(table).where(table.c.project_id == project_id, table.c.name == name)
    row = (await tx.execute(query.order_by(table.c.number.desc()).limit(1))).mappings().one_or_none()
    return None if row is None else PublicationRow.of(row)


async def insert(tx: Tx, project_id: str, values: Mapping[str, Any], blobs: Mapping[str, int]) -> PublicationRow:
    """Insert one; it keeps ``blobs`` (digest → bytes)."""
    row = {**values, "summary": clean_json(values["summary"]), "id": new_id("pub"), "project_id": project_id}
    made = (await tx.execute(table.insert().values(row).returning(table))).mappings().one()
    await blob_refs.add_refs(tx, project_id, OWNER, made["id"], blobs.items())
    return PublicationRow.of(made)


async def get(tx: Tx, project_id: str, publication_id: str, *, lock: bool = False) -> PublicationRow | None:
    return await _one(tx, table.c.project_id == project_id, table.c.id == publication_id, lock=lock)


async def get_public(tx: Tx, publication_id: str) -> PublicationRow | None:
    """Return one of any project that anybody may read."""
    return await _one(tx, table.c.id == publication_id, table.c.public.is_(true()))


async def neighbours(tx: Tx, row: PublicationRow) -> tuple[str | None, str | None]:
    """Return the ids of the one before it and of the newest of its name; null where there is none, or it is that itself."""
    mine = (table.c.project_id == row.project_id, table.c.name == row.name)
    query = select(table.c.id, table.c.number).where(*mine).order_by(table.c.number)
    found = {number: id_ for id_, number in cast("list[tuple[str, int]]", (await tx.execute(query)).all())}
    last = found[max(found)]
    return found.get(row.number - 1), None if last == row.id else last


async def change(tx: Tx, row: PublicationRow, values: Mapping[str, Any], blobs: Mapping[str, int]) -> PublicationRow:
    """Write ``values`` and keep further ``blobs``."""
    changed = {**values, "updated_at": func.clock_timestamp()}
    query = table.update().where(table.c.id == row.id).values(changed).returning(table)
    made = (await tx.execute(query)).mappings().one()
    await blob_refs.add_refs(tx, row.project_id, OWNER, row.id, blobs.items())
    return PublicationRow.of(made)


async def _one(tx: Tx, *conditions: Any, lock: bool = False) -> PublicationRow | None:
    query = select(table).where(*conditions)
    row = (await tx.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    return None if row is None else PublicationRow.of(row)

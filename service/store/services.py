"""Gateway services of a project (NEEDS C5). Use it as ``from service.store import services``."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Conflict, Invalid
from service.domain.ids import new_id
from service.domain.services import ServiceSpec
from service.store import credentials
from service.store.catalogue import storable
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_models import ServiceRow
from service.store.tables_models import services

LISTING = Listing(
    services,
    ServiceRow.of,
    sorts_by(created_at=Sort(services.c.created_at), name=Sort(services.c.name, str)),
    {"name": one_of(services.c.name)},
    version=services.c.revision,
)


async def create(tx: Tx, project_id: str, spec: ServiceSpec, *, private: bool) -> tuple[ServiceRow, bool]:
    """Return the service and whether it is new; the same one again is found. Raises Conflict("service_exists")."""
    values = {"id": new_id("svc"), "project_id": project_id, "name": spec.name, "spec": storable(spec)}
    query = insert(services).values(**values, private=private).on_conflict_do_nothing().returning(services)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is not None:
        return ServiceRow.of(row), True
    query = select(services).where(services.c.project_id == project_id, services.c.name == spec.name)
    found = ServiceRow.of((await tx.execute(query)).mappings().one())
    if found.spec != spec:
        raise Conflict("service_exists", f"there is another service {spec.name!r}: replace it, or take another name")
    return found, False


async def get(tx: Tx, project_id: str, service_id: str) -> ServiceRow | None:
    """Return the project's service; null if there is none (or it is another project's)."""
    row = (await tx.execute(select(services).where(*_mine(project_id, service_id)))).mappings().one_or_none()
    return None if row is None else ServiceRow.of(row)


async def replace(tx: Tx, project_id: str, service_id: str, spec: ServiceSpec, *, private: bool) -> ServiceRow | None:
    """Replace it; its secret is forgotten when the address changes. Raises Invalid("name_changed")."""
    query = select(services).where(*_mine(project_id, service_id)).with_for_update()
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    before = ServiceRow.of(row)
    if before.name != spec.name:
        raise Invalid("name_changed", "agents name this service: make a new one instead")
    kept: dict[str, Any] = {}
    if before.credential_id is not None and before.spec.base_url != spec.base_url:
        await credentials.drop(tx, before.credential_id)
        kept = {"credential_id": None}
    changed = services.update().where(*_mine(project_id, service_id))
    changed = changed.values(spec=storable(spec), private=private, revision=services.c.revision + 1, **kept)
    return ServiceRow.of((await tx.execute(changed.returning(services))).mappings().one())


async def delete(tx: Tx, project_id: str, service_id: str) -> bool:
    """Delete it with its secret; agents that name it go without. False if there is no such service."""
    query = services.delete().where(*_mine(project_id, service_id)).returning(services.c.credential_id)
    row = (await tx.execute(query)).one_or_none()
    if row is not None and row[0] is not None:
        await credentials.drop(tx, row[0])
    return row is not None


def _mine(project_id: str, service_id: str) -> Any:
    return services.c.project_id == project_id, services.c.id == service_id

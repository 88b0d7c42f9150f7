"""Projects: whose things are whose (CONTRACTS 11)."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Conflict
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.rows import Project
from service.store.tables import projects

DEFAULT = "default"


async def get_default(tx: Tx) -> Project:
    """Return the trusted project ``default``; made where it is missing."""
    return await find_or_create(tx, DEFAULT)


async def find_or_create(tx: Tx, name: str) -> Project:
    """Return the project of this name; made, as a trusted one, where it is missing."""
    await _insert(tx, name, untrusted=False)
    query = select(projects).where(projects.c.name == name)
    return Project.of((await tx.execute(query)).mappings().one())


async def create(tx: Tx, name: str, *, untrusted: bool = False) -> Project:
    """Make a project. Raises Conflict("project_exists")."""
    project_id = await _insert(tx, name, untrusted=untrusted)
    found = None if project_id is None else await get(tx, project_id)
    if found is None:
        raise Conflict("project_exists", f"there is a project {name!r} already")
    return found


async def get(tx: Tx, project_id: str) -> Project | None:
    row = (await tx.execute(select(projects).where(projects.c.id == project_id))).mappings().one_or_none()
    return None if row is None else Project.of(row)


async def _insert(tx: Tx, name: str, *, untrusted: bool) -> str | None:
    query = insert(projects).values(id=new_id("prj"), name=name, untrusted=untrusted)
    return (await tx.execute(query.on_conflict_do_nothing().returning(projects.c.id))).scalar_one_or_none()

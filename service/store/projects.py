"""Projects: whose things are whose (CONTRACTS 11).

Use it as ``from service.store import projects``: one name is that of a builtin.
"""

from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Conflict
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.notifications import QUEUE
from service.store.paging import Sort, fetch_page
from service.store.phases import notify
from service.store.rows import Page, Project, Slice
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


async def create(tx: Tx, name: str, *, untrusted: bool = False, max_runs: int | None = None) -> Project:
    """Make a project. Raises Conflict("project_exists")."""
    project_id = await _insert(tx, name, untrusted=untrusted, max_runs=max_runs)
    found = None if project_id is None else await get(tx, project_id)
    if found is None:
        raise Conflict("project_exists", f"there is a project {name!r} already")
    return found


async def list(tx: Tx, page: Page) -> Slice[Project]:
    """Return projects, newest first. Raises Invalid("invalid_cursor" | "invalid_limit")."""
    sort = Sort(projects.c.created_at, descending=True)
    rows, following = await fetch_page(tx, select(projects), sort, projects.c.id, page)
    return Slice([Project.of(row) for row in rows], following)


async def change(tx: Tx, project_id: str, **columns: Any) -> Project | None:
    """Write ``max_runs``, ``untrusted`` or ``budget``; null if there is no such project. Wakes claimers."""
    query = projects.update().where(projects.c.id == project_id).values(columns).returning(projects)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    await notify(tx, QUEUE, project_id)
    return Project.of(row)


async def get(tx: Tx, project_id: str) -> Project | None:
    row = (await tx.execute(select(projects).where(projects.c.id == project_id))).mappings().one_or_none()
    return None if row is None else Project.of(row)


async def _insert(tx: Tx, name: str, *, untrusted: bool, max_runs: int | None = None) -> str | None:
    query = insert(projects).values(id=new_id("prj"), name=name, untrusted=untrusted, max_runs=max_runs)
    return (await tx.execute(query.on_conflict_do_nothing().returning(projects.c.id))).scalar_one_or_none()

"""Tasks: immutable, one row per project and digest."""

from collections.abc import Mapping

from sqlalchemy import ColumnElement, select

from service.domain.errors import Fault
from service.domain.ids import new_id
from service.domain.tasks import TaskManifest
from service.store.catalogue import find_or_insert, storable, take_refs
from service.store.database import Tx
from service.store.paging import Sort, fetch_page
from service.store.rows import Page, Slice, TaskRow
from service.store.run_filters import facet_holds
from service.store.tables import tasks

_SORT = Sort(tasks.c.created_at, descending=True)


async def create(tx: Tx, project_id: str, manifest: TaskManifest) -> tuple[TaskRow, bool]:
    """Return the project's task with this content and whether it is new.

    Raises Invalid("missing_blobs", missing=[…]), Invalid("wrong_size").
    """
    values = {
        "id": new_id("task"),
        "project_id": project_id,
        "name": manifest.name,
        "manifest": storable(manifest),
        "digest": manifest.digest(),
    }
    row, created = await find_or_insert(tx, tasks, values)
    if row is None:
        raise Fault("task_vanished", "a task was deleted while it was created anew")
    if created:
        await take_refs(tx, project_id, "task", row["id"], [*manifest.visible, *manifest.hidden])
    return TaskRow.of(row), created


async def get(tx: Tx, project_id: str, task_id: str) -> TaskRow | None:
    """Return the project's task; null if there is none (or it is another project's)."""
    query = select(tasks).where(tasks.c.id == task_id, tasks.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else TaskRow.of(row)


async def list(
    tx: Tx,
    project_id: str,
    page: Page,
    *,
    name: str | None = None,
    facets: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Slice[TaskRow]:
    """Return a page, newest first; ``facets`` and ``labels`` must all hold."""
    where: tuple[ColumnElement[bool], ...] = (tasks.c.project_id == project_id,)
    if name is not None:
        where += (tasks.c.name == name,)
    if labels:
        where += (tasks.c.manifest["labels"].contains(dict(labels)),)
    where += tuple(facet_holds(key, value) for key, value in (facets or {}).items())
    rows, following = await fetch_page(tx, select(tasks).where(*where), _SORT, tasks.c.id, page)
    return Slice([TaskRow.of(row) for row in rows], following)

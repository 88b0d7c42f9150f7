"""Tasks: immutable, one row per project and digest."""

from collections.abc import Iterable

from sqlalchemy import select

from service.domain.errors import Fault
from service.domain.ids import new_id
from service.domain.tasks import TaskManifest
from service.store.catalogue import find_or_insert, storable, take_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import TaskRow
from service.store.run_filters import facet_holds, of_benchmark
from service.store.tables import tasks

LISTING = Listing(
    tasks,
    TaskRow.of,
    sorts_by(created_at=Sort(tasks.c.created_at), name=Sort(tasks.c.name, str)),
    {"name": one_of(tasks.c.name), "digest": one_of(tasks.c.digest), "benchmark_id": of_benchmark(tasks.c.id)},
    labels=tasks.c.manifest["labels"],
    facets=facet_holds,
)


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


async def manifests(tx: Tx, project_id: str, task_ids: Iterable[str]) -> dict[str, TaskManifest]:
    """Return what the project's tasks say, by id; what is no task of it is left out. Many are read bit by bit."""
    found: dict[str, TaskManifest] = {}
    wanted = list(task_ids)
    for start in range(0, len(wanted), 100):
        some = wanted[start : start + 100]
        query = select(tasks.c.id, tasks.c.manifest).where(tasks.c.project_id == project_id, tasks.c.id.in_(some))
        found |= {row.id: TaskManifest.model_validate(row.manifest) for row in await tx.execute(query)}
    return found


async def get(tx: Tx, project_id: str, task_id: str) -> TaskRow | None:
    """Return the project's task; null if there is none (or it is another project's)."""
    query = select(tasks).where(tasks.c.id == task_id, tasks.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else TaskRow.of(row)

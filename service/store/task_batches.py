"""Tasks made many at once, as an import does; one at a time they are made by :mod:`service.store.tasks`."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Fault, Invalid
from service.domain.ids import new_id
from service.domain.tasks import TaskManifest
from service.store.blob_refs import add_refs_of_many, project_sizes
from service.store.catalogue import NAMED_MISSING
from service.store.database import Tx
from service.store.tables import tasks

Bodies = Mapping[str, tuple[TaskManifest, dict[str, Any]]]
"""Digest → the manifest and its storable form (``service.store.catalogue.storable``)."""


async def create_many(tx: Tx, project_id: str, bodies: Bodies) -> dict[str, str]:
    """Find or make a task for each digest; return ``{digest: task id}``. The files' sizes were checked.

    Meant for some hundreds at once. Raises Invalid("missing_blobs", missing=[…]): then none is made.
    """
    found = await _ids(tx, project_id, bodies)
    new = {digest: bodies[digest] for digest in sorted(set(bodies) - set(found))}
    if not new:
        return found
    files = {digest: _files(manifest) for digest, (manifest, _) in new.items()}
    await _hold(tx, project_id, files)
    made = await _insert(tx, project_id, new)
    owners = {task_id: files[digest] for digest, task_id in made.items()}
    await add_refs_of_many(tx, project_id, "task", owners)
    others = await _ids(tx, project_id, {digest: new[digest] for digest in set(new) - set(made)})
    if len(found) + len(made) + len(others) != len(bodies):
        raise Fault("task_vanished", "a task was deleted while it was created anew")
    return found | made | others


async def _ids(tx: Tx, project_id: str, bodies: Bodies) -> dict[str, str]:
    if not bodies:
        return {}
    query = select(tasks.c.digest, tasks.c.id).where(tasks.c.project_id == project_id, tasks.c.digest.in_(bodies))
    return {row.digest: row.id for row in await tx.execute(query)}


async def _hold(tx: Tx, project_id: str, files: Mapping[str, Mapping[str, int]]) -> None:
    wanted = {sha for some in files.values() for sha in some}
    missing = sorted(wanted - set(await project_sizes(tx, project_id, wanted, hold=True)))
    if missing:
        raise Invalid("missing_blobs", f"{len(missing)} files are not uploaded", missing=missing[:NAMED_MISSING])


async def _insert(tx: Tx, project_id: str, new: Bodies) -> dict[str, str]:
    values = [
        {"id": new_id("task"), "project_id": project_id, "name": manifest.name, "manifest": body, "digest": digest}
        for digest, (manifest, body) in new.items()
    ]
    query = insert(tasks).values(values).on_conflict_do_nothing().returning(tasks.c.digest, tasks.c.id)
    return {row.digest: row.id for row in await tx.execute(query)}


def _files(manifest: TaskManifest) -> dict[str, int]:
    return {f.sha256: f.size_bytes for f in (*manifest.visible, *manifest.hidden)}

"""The entries of a run's sealed deliverable."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from sqlalchemy import func, select

from service.domain.artifacts import ArtifactEntry, Deliverable
from service.domain.cleaning import clean_str
from service.domain.errors import Invalid
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.paging import MAX_LIMIT
from service.store.rows import ArtifactRow, Slice
from service.store.tables import artifacts

_BATCH = 1000


async def insert_all(tx: Tx, run_id: str, deliverable: Deliverable) -> None:
    """Replace the run's entries by those of ``deliverable`` and take refs to its files. Sets nothing of the run."""
    run = await lock_run(tx, run_id)
    await tx.execute(artifacts.delete().where(artifacts.c.run_id == run_id))
    rows = (_values(run_id, i, e) for i, e in enumerate(deliverable.entries))
    for batch in _batches(rows):
        await tx.execute(artifacts.insert(), batch)
    files = [(e.sha256, e.size_bytes) for e in deliverable.files if e.sha256 is not None]
    await add_refs(tx, run["project_id"], "artifact", run_id, files)


async def list(tx: Tx, run_id: str, cursor: int = 0, limit: int = 100) -> Slice[ArtifactRow]:
    """Return entries from position ``cursor`` on, in order. ``Slice.next`` is (the next position, run id).

    The caller checked the project. Raises Invalid("invalid_limit").
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    mine = (artifacts.c.run_id == run_id, artifacts.c.position >= cursor)
    query = select(artifacts).where(*mine).order_by(artifacts.c.position).limit(limit + 1)
    found = [ArtifactRow.of(row) for row in (await tx.execute(query)).mappings()]
    following = (str(found[limit].position), run_id) if len(found) > limit else None
    return Slice(found[:limit], following)


async def by_path(tx: Tx, run_id: str, path: str) -> ArtifactRow | None:
    """Return the entry with this readable path. The caller checked the project."""
    if clean_str(path)[1]:
        return None
    mine = (artifacts.c.run_id == run_id, func.md5(artifacts.c.path) == func.md5(path), artifacts.c.path == path)
    row = (await tx.execute(select(artifacts).where(*mine).limit(1))).mappings().one_or_none()
    return None if row is None else ArtifactRow.of(row)


def _values(run_id: str, position: int, e: ArtifactEntry) -> dict[str, Any]:
    link = None if e.link_target is None else clean_str(e.link_target)[0]
    return {
        "run_id": run_id,
        "position": position,
        "path": clean_str(e.path)[0],
        "kind": e.kind.value,
        "size_bytes": e.size_bytes,
        "sha256": e.sha256,
        "mime": e.mime,
        "link_target": link,
        "mtime": e.mtime,
    }


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[Any]:
    while batch := [*islice(rows, _BATCH)]:
        yield batch

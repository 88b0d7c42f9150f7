"""The collector removes what nobody needs, and nothing else, whatever happens meanwhile."""

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func

from service.domain.errors import Conflict
from service.domain.tasks import FileRef, TaskManifest
from service.store import tasks
from service.store.blob_refs import UPLOAD, drop_old_uploads
from service.store.blobs import BlobStore, add_refs, drop_refs, project_has
from service.store.database import Database
from service.store.tables import blob_refs
from tests.integration.store.seeds import Seeds, seed

DAY = 86_400


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def age(store: BlobStore, sha: str, seconds: float = 2 * DAY) -> None:
    then = time.time() - seconds
    os.utime(store.path(sha), (then, then))


async def test_only_old_files_without_a_ref_go(db: Database, seeds: Seeds, store: BlobStore) -> None:
    old, fresh, needed = (store.store_bytes(x)[0] for x in (b"old", b"fresh", b"needed"))
    age(store, old)
    age(store, needed)
    stray = store.root / "tmp" / "left-by-a-crash"
    stray.write_bytes(b"xyz")
    os.utime(stray, (0, 0))
    async with db.transaction() as tx:
        await add_refs(tx, seeds.project.id, "upload", "u", [(needed, 6)])
    assert await store.gc(db) == len(b"old") + len(b"xyz")
    assert [store.path(s).exists() for s in (old, fresh, needed)] == [False, True, True]
    async with db.transaction() as tx:
        await drop_refs(tx, "upload", "u")
    assert await store.gc(db) == len(b"needed")


async def test_uploads_that_nothing_was_made_of_are_forgotten_after_a_week(db: Database, seeds: Seeds) -> None:
    project, (lost, used, fresh) = seeds.project.id, (c * 64 for c in "abc")
    async with db.transaction() as tx:
        await add_refs(tx, project, UPLOAD, project, [(lost, 1), (used, 1), (fresh, 1)])
        await add_refs(tx, project, "task", "task_1", [(used, 1)])
        old = blob_refs.update().where(blob_refs.c.digest.in_([lost, used]))
        await tx.execute(old.values(created_at=func.clock_timestamp() - timedelta(days=8)))
        assert await drop_old_uploads(tx) == 2
        assert await project_has(tx, project, [lost, used, fresh]) == {used, fresh}


async def test_one_collector_at_a_time(db: Database, store: BlobStore) -> None:
    async with db.session_lock("workstead.blobs.gc"):
        with pytest.raises(Conflict):
            await store.gc(db)


async def test_uploads_while_the_collector_runs_are_kept(db: Database, seeds: Seeds, store: BlobStore) -> None:
    """Old unreferenced files that are uploaded again while the collector runs: whoever got a digest finds the file."""
    contents = [str(i).encode() for i in range(300)]
    for content in contents:
        age(store, store.store_bytes(content)[0])
    kept: list[str] = []

    async def upload() -> None:
        for content in contents[::2]:
            sha, size = await asyncio.to_thread(store.store_bytes, content)
            async with db.transaction() as tx:
                await add_refs(tx, seeds.project.id, "upload", sha, [(sha, size)])
            kept.append(sha)

    await asyncio.gather(upload(), store.gc(db), return_exceptions=False)
    assert len(kept) == 150
    assert all(store.path(sha).exists() for sha in kept)
    await store.gc(db)
    assert all(store.path(sha).exists() for sha in kept)


async def test_a_task_needs_its_blobs_and_keeps_them(db: Database, seeds: Seeds, store: BlobStore) -> None:
    sha, size = store.store_bytes(b"visible")
    manifest = TaskManifest(name="t", instruction="i", visible=[FileRef(path="a", sha256=sha, size_bytes=size)])
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        await add_refs(tx, other.project.id, "upload", "u", [(sha, size)])
    with pytest.raises(Exception, match="not uploaded") as caught:
        async with db.transaction() as tx:
            await tasks.create(tx, seeds.project.id, manifest)
    assert getattr(caught.value, "fields", {}) == {"missing": [sha]}
    async with db.transaction() as tx:
        await add_refs(tx, seeds.project.id, "upload", "v", [(sha, size)])
        first, created = await tasks.create(tx, seeds.project.id, manifest)
        again, twice = await tasks.create(tx, seeds.project.id, manifest)
        await drop_refs(tx, "upload", "u")
        await drop_refs(tx, "upload", "v")
        assert await project_has(tx, seeds.project.id, [sha]) == {sha}
        assert await project_has(tx, other.project.id, [sha]) == set()
    assert (created, twice, first) == (True, False, again)
    age(store, sha)
    assert await store.gc(db) == 0

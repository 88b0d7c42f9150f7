"""The marks of a task are worked out once for all of its runs."""

from datetime import UTC, datetime
from pathlib import Path

from service.domain.tasks import FileRef, TaskManifest
from service.lifecycle.contamination.scanning import KeptMarks, task_marks
from service.store.blobs import BlobStore
from service.store.rows import TaskRow

KEY = (
    "Credit note {n} was never posted, therefore receivables are overstated by many euros; the reply must say so. " * 3
)


def _task(blobs: BlobStore, n: int) -> TaskRow:
    sha, size = blobs.store_bytes(KEY.format(n=n).encode())
    manifest = TaskManifest(name="t/a", instruction="x", hidden=[FileRef(path="key.md", sha256=sha, size_bytes=size)])
    return TaskRow(f"tsk_{n}", "prj_1", "t/a", f"digest-{n}", manifest, datetime.now(UTC))


def test_they_are_kept_by_what_they_are_of(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    known, task = KeptMarks(blobs), _task(blobs, 1)
    first = known.of(task, ["canary-string-b", "canary-string-a"])
    assert [*map(str, first)] == [*map(str, task_marks(blobs, task.manifest, ["canary-string-a", "canary-string-b"]))]
    assert known.of(task, ["canary-string-a", "canary-string-b"]) is first
    assert known.of(task, ["canary-string-a"]) != first
    assert known.of(_task(blobs, 2), ["canary-string-a", "canary-string-b"]) != first


def test_what_was_not_asked_for_longest_makes_room(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    tasks = [_task(blobs, n) for n in range(3)]
    size = len(task_marks(blobs, tasks[0].manifest, []))
    assert size > 1
    known = KeptMarks(blobs, most=2 * size)
    first, second = known.of(tasks[0], []), known.of(tasks[1], [])
    assert known.of(tasks[0], []) is first
    known.of(tasks[2], [])
    assert known.of(tasks[0], []) is first
    assert known.of(tasks[1], []) is not second

"""Deliverables that were made elsewhere (NEEDS C9): no sandbox, no attempt; what is uploaded is sealed and graded.

A run of an ``external`` agent waits in phase ``held`` for its upload. An upload with no run at all gets one, of the
project's agent ``upload``, so that it is found, graded, reported and deleted as any other; it is flagged ``external``.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.agents import AgentSpec, Driver, ScaffoldManifest
from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.errors import Conflict, Invalid
from service.domain.events import EventType, NewEvent
from service.domain.run_states import EndedBecause, Flag, Phase
from service.domain.tasks import TaskManifest
from service.lifecycle.clock import Clock
from service.lifecycle.sealing import follow_up
from service.sandboxes.docker.signatures import HEAD_BYTES, TAIL_BYTES, media_type
from service.store import agents, artifacts, blob_refs, events, runs, scaffolds, tasks
from service.store import clock as database_clock
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.phases import touch
from service.store.rows import RunRow

AWAITING = "awaiting_upload"
AGENT = "upload"
"""Label of the agent, and name of the scaffold, of uploads that had no run."""
AWAITING_UPLOAD = {"reason": AWAITING, "detail": "its deliverable is to be uploaded: PUT /v1/runs/{id}/deliverable"}


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file of the content store and where it belongs below the workspace."""

    path: str
    sha256: str
    size_bytes: int


async def await_upload(tx: Tx, run: RunRow) -> RunRow:
    """Keep a new run of an external agent away from hosts."""
    await runs.set_phase(tx, run.id, Phase.HELD, hold=AWAITING_UPLOAD)
    return await runs.load(tx, run.id)


async def upload_agent(tx: Tx, project_id: str) -> str:
    """Return the id of the agent of uploads that had no run; made when it is first needed. Raises Conflict."""
    manifest = ScaffoldManifest(name=AGENT, version="1", kind="external")
    await scaffolds.register(tx, project_id, manifest)
    return (await agents.create(tx, project_id, AgentSpec(scaffold=f"{AGENT}@1")))[0].id


def placed(files: Iterable[Uploaded], task: TaskManifest) -> list[Uploaded]:
    """Return the files at their places: below a collect root that they name, else below the first one.

    Raises Invalid ``bad_upload`` for a path that is taken twice, ``deliverable_too_large``.
    """
    found = [Uploaded(_place(f.path, task.collect), f.sha256, f.size_bytes) for f in files]
    paths = {f.path for f in found}
    if len(paths) != len(found):
        raise Invalid("bad_upload", "two files have the same place in the deliverable")
    clash = next((p for p in paths for parent in _parents(p) if parent in paths), None)
    if clash is not None:
        raise Invalid("bad_upload", f"{clash!r} lies below a file")
    limits, size = task.limits, sum(f.size_bytes for f in found)
    if len(found) > limits.deliverable_files or size > limits.deliverable_bytes:
        detail = f"{len(found)} files of {size} bytes; the task takes {limits.deliverable_files} of {limits.deliverable_bytes}"
        raise Invalid("deliverable_too_large", detail)
    return sorted(found, key=lambda f: f.path)


def described(files: Sequence[Uploaded], blobs: BlobStore) -> Deliverable:
    """Return the deliverable with each file's type. Reads of every file its head and tail; blocks."""
    return Deliverable(tuple(_entry(file, blobs) for file in files))


async def seal_upload(tx: Tx, run_id: str, deliverable: Deliverable, manifest: tuple[str, int], clock: Clock) -> RunRow:
    """Seal the deliverable as the run's and queue its gradings; ``manifest``: digest and size of its manifest's blob.

    The same deliverable again changes nothing. Raises NotFound, Conflict ``not_external``, ``deliverable_sealed``,
    ``run_over``.
    """
    await lock_run(tx, run_id)
    run = await runs.load(tx, run_id)
    if run.driver is not Driver.EXTERNAL:
        raise Conflict("not_external", "the deliverable of this run comes from its sandbox")
    if run.deliverable_digest is not None:
        if run.deliverable_digest == deliverable.digest():
            return run
        raise Conflict("deliverable_sealed", "the run has a deliverable already; make another run for another one")
    if run.phase is not Phase.HELD:
        raise Conflict("run_over", f"the run is {run.phase}")
    task = await tasks.get(tx, run.project_id, run.task_id)
    assert task is not None
    await _seal(tx, run, deliverable, manifest, clock)
    await follow_up(tx, run_id, task.manifest, EndedBecause.COMPLETED)
    return await runs.load(tx, run_id)


async def _seal(tx: Tx, run: RunRow, deliverable: Deliverable, manifest: tuple[str, int], clock: Clock) -> None:
    await artifacts.insert_all(tx, run.id, deliverable)
    await blob_refs.add_refs(tx, run.project_id, "run", run.id, [manifest])
    payload: dict[str, Any] = {
        "digest": deliverable.digest(),
        "manifest_sha256": manifest[0],
        "files": len(deliverable.files),
        "bytes": deliverable.total_bytes,
        "problems": 0,
        "truncated": False,
        "refused": None,
    }
    sealed = NewEvent(EventType.DELIVERABLE, payload, "deliverable", 0, clock.now())
    await events.append(tx, run.id, run.attempt, None, [sealed])
    await touch(
        tx,
        run.id,
        ended_because=EndedBecause.COMPLETED,
        ended_at=await database_clock.now(tx),
        deliverable_digest=deliverable.digest(),
        deliverable_files=len(deliverable.files),
        deliverable_bytes=deliverable.total_bytes,
        deliverable_problems=0,
        hold=None,
    )
    await runs.add_flags(tx, run.id, [Flag.EXTERNAL, *([] if deliverable.files else [Flag.NO_DELIVERABLE])])


def manifest_bytes(deliverable: Deliverable) -> bytes:
    return json.dumps(deliverable.manifest()).encode()


def _entry(file: Uploaded, blobs: BlobStore) -> ArtifactEntry:
    with blobs.open(file.sha256) as opened:
        head = opened.read(HEAD_BYTES)
        opened.seek(max(0, file.size_bytes - TAIL_BYTES))
        mime = media_type(file.path, head, opened.read(TAIL_BYTES))
    return ArtifactEntry(file.path, EntryKind.FILE, file.size_bytes, file.sha256, mime)


def _place(path: str, roots: Sequence[str]) -> str:
    return path if any(path.startswith(f"{root}/") for root in roots) else f"{roots[0]}/{path}"


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]

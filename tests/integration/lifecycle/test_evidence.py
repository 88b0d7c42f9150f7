"""The evidence of a deliverable: made once for all who want it, made again when lost, and never worth a verdict."""

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from service.domain.errors import Fault
from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, EvidenceState
from service.domain.limits import Limits
from service.graders.contract import GraderBusy, GraderFault
from service.lifecycle import evidence as step
from service.lifecycle.evidence import EvidenceOf, make_queued
from service.lifecycle.integrity import ReportContext
from service.sandboxes.contract import EngineError, Sandbox, SandboxRefused
from service.store import evidence
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.rows import RunRow
from service.store.rows_grading import EvidenceRow
from service.workers.evidence import evidence_queue
from service.workers.jobs import JobsConfig, run_jobs
from tests.integration.lifecycle.stage import Stage, until

TEXT = "open('output/a.md', 'w').write('# Report'); open('output/b.txt', 'w').close(); import os; os.symlink('a', 'output/l')"
BINARY = "open('output/a.pdf', 'w').write('%PDF-1.4')"
PNG = b"\x89PNG\r\n\x1a\n and the rest"
PICTURE = sha256(PNG).hexdigest()


class NoRoom:
    """Where a room should be had."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @asynccontextmanager
    async def open(
        self, environment: str, limits: Limits, *, in_memory: bool = False, runs_code: bool = False, **_: Any
    ) -> AsyncGenerator[Sandbox]:
        raise self._error
        yield  # pyright: ignore[reportUnreachable]


async def _sealed(stage: Stage, code: str = TEXT) -> RunRow:
    run = await stage.submit(await stage.task(graders=[]), await stage.agent(code=code))
    await stage.work(stage.context(), run.id)
    return await stage.row(run.id)


def _of(stage: Stage, run: RunRow, rooms: NoRoom | None = None) -> EvidenceOf:
    assert run.deliverable_digest is not None
    ctx = ReportContext(stage.db, stage.blobs, rooms)
    return EvidenceOf(ctx, run.project_id, run.id, run.deliverable_digest)


async def _row(stage: Stage, run: RunRow) -> EvidenceRow:
    async with stage.db.reading() as tx:
        row = await evidence.present(tx, run.project_id, run.deliverable_digest or "")
    assert row is not None
    return row


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makings."""
    made: list[int] = []
    real = step.make_document

    async def count(entries: Sequence[Any], content_of: Any, rooms: Any, keep: Any) -> EvidenceDocument:
        made.append(1)
        await asyncio.sleep(0.05)
        document = await real(entries, content_of, rooms, keep)
        keep({PICTURE: PNG})
        image = EvidenceImage(
            label="", source="file", sha256=PICTURE, media_type="image/png", width=1, height=1, size_bytes=len(PNG)
        )
        first: EvidenceFile = document.files[0].model_copy(update={"images": (image,)})
        return document.model_copy(update={"files": (first, *document.files[1:])})

    monkeypatch.setattr(step, "make_document", count)
    return made


async def test_gradings_that_want_it_at_once_have_it_made_once(stage: Stage, counted: list[int]) -> None:
    first, second = await _sealed(stage), await _sealed(stage)
    sources = [_of(stage, run) for run in (first, second) for _ in range(5)]
    found = await asyncio.gather(*(s.document() for s in sources))
    assert len(counted) == 1
    assert all(d == found[0] for d in found)
    assert [(f.path, f.kind, f.state) for f in found[0].files] == [
        ("output/a.md", "text", "extracted"), ("output/b.txt", "binary", "listed"),
    ]  # fmt: skip
    assert found[0].skipped == (("output/l", "skipped_symlink"),)
    row = await _row(stage, first)
    assert (row.state, row.files, row.failed_files, row.tries) == (EvidenceState.READY, 2, 0, 1)


async def test_pictures_are_those_of_the_document(stage: Stage, counted: list[int]) -> None:
    source = _of(stage, await _sealed(stage))
    assert await source.image(PICTURE) == PNG
    assert len(counted) == 1
    with pytest.raises(GraderFault) as none:
        await source.image(sha256(b"other").hexdigest())
    stage.blobs.path(PICTURE).unlink()
    with pytest.raises(GraderFault) as lost:
        await source.image(PICTURE)
    assert {none.value.type, lost.value.type} == {"evidence_missing"}


async def test_the_collector_keeps_what_a_document_needs(stage: Stage, counted: list[int]) -> None:
    run = await _sealed(stage)
    await _of(stage, run).document()
    await stage.blobs.gc(stage.db, older_than_s=-10)
    assert await _of(stage, run).image(PICTURE) == PNG
    assert len(counted) == 1


async def test_a_document_that_is_lost_is_made_again(stage: Stage, counted: list[int]) -> None:
    run = await _sealed(stage)
    await _of(stage, run).document()
    stage.blobs.path((await _row(stage, run)).sha256 or "").unlink()
    assert len((await _of(stage, run).document()).files) == 2
    assert len(counted) == 2


@pytest.mark.parametrize(
    ("rooms", "error", "cause"),
    [
        (None, GraderBusy, "no_rooms"),
        (NoRoom(EngineError("engine_error", "away")), GraderBusy, "room_failed"),
        (NoRoom(SandboxRefused("unknown_image", "no documents")), GraderBusy, "room_failed"),
        (NoRoom(ZeroDivisionError("ours")), GraderFault, "extractor_error"),
    ],
    ids=["no engine", "engine away", "no image", "bug"],
)
async def test_what_cannot_be_made_is_said_and_tried_again(
    stage: Stage, rooms: NoRoom | None, error: type[Fault], cause: str
) -> None:
    run = await _sealed(stage, BINARY)
    for _ in range(2):
        with pytest.raises(error) as raised:
            await _of(stage, run, rooms).document()
        assert raised.value.type == "evidence_unavailable"
        row = await _row(stage, run)
        assert (row.state, row.cause, row.tries) == (EvidenceState.UNAVAILABLE, cause, 0)


async def test_what_was_delivered_and_is_lost_is_our_fault(stage: Stage) -> None:
    run = await _sealed(stage, BINARY)
    stage.blobs.path(sha256(b"%PDF-1.4").hexdigest()).unlink()
    with pytest.raises(GraderFault) as missing:
        await _of(stage, run).document()
    assert missing.value.type == "evidence_missing"


async def test_what_kills_its_maker_is_given_up_until_somebody_asks(stage: Stage, counted: list[int]) -> None:
    run = await _sealed(stage)
    async with stage.db.transaction() as tx:
        row = await evidence.request(tx, run.project_id, run.deliverable_digest or "", queued=False)
        for _ in range(step.MAX_STARTS):
            await evidence.start(tx, row.id)
    with pytest.raises(GraderFault):
        await _of(stage, run).document()
    assert ((await _row(stage, run)).cause, counted) == ("extractor_crashed", [])
    assert len((await _of(stage, run).document()).files) == 2


async def test_another_version_makes_a_document_of_its_own(
    stage: Stage, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await _sealed(stage)
    await _of(stage, run).document()
    monkeypatch.setattr(evidence, "VERSION", "next")
    await _of(stage, run).document()
    assert len(counted) == 2


@pytest.mark.fault(125)
async def test_a_document_that_was_asked_for_is_made_by_a_job_once(stage: Stage, counted: list[int]) -> None:
    run = await _sealed(stage)
    async with stage.db.transaction() as tx:
        row = await evidence.request(tx, run.project_id, run.deliverable_digest or "", queued=True)
    ctx = ReportContext(stage.db, stage.blobs, None)
    stop = asyncio.Event()
    config = JobsConfig(scan_s=0.2, poll_s=0.1)
    jobs = asyncio.create_task(run_jobs(stage.db, stage.notifications, [evidence_queue(ctx)], config, stop))

    async def closed() -> bool:
        return not (await _row(stage, run)).queued

    await until(closed)
    stop.set()
    await asyncio.wait_for(jobs, 15)
    await asyncio.gather(*(make_queued(ctx, row.id) for _ in range(3)), make_queued(ctx, "evd_gone"))
    assert ((await _row(stage, run)).state, len(counted)) == (EvidenceState.READY, 1)


def _elsewhere(url: str, blobs: Path, where: Mapping[str, str], begun: Any, finish: Any) -> None:
    """What another grader process does: it begins, and ends when it is let."""

    async def work() -> None:
        db = Database(url)
        source = EvidenceOf(ReportContext(db, BlobStore(blobs), None), where["project"], where["run"], where["digest"])
        real = step.make_document

        async def slow(*given: Any) -> EvidenceDocument:
            begun.set()
            await asyncio.to_thread(finish.wait, 30)
            return await real(*given)

        step.make_document = slow
        await source.document()
        await db.close()

    asyncio.run(work())


async def test_two_processes_make_it_once(stage: Stage, counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    run = await _sealed(stage)
    where = {"project": run.project_id, "run": run.id, "digest": run.deliverable_digest or ""}
    spawn = multiprocessing.get_context("spawn")
    begun, finish = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_elsewhere, args=(stage.db.url, stage.blobs.root, where, begun, finish))
    process.start()
    try:
        assert await asyncio.to_thread(begun.wait, 30)
        monkeypatch.setattr(step, "OTHERS_S", 0.1)
        with pytest.raises(GraderBusy):
            await _of(stage, run).document()
        monkeypatch.setattr(step, "OTHERS_S", 30.0)
        waiting = asyncio.create_task(_of(stage, run).document())
        finish.set()
        assert len((await waiting).files) == 2
        assert counted == []
    finally:
        finish.set()
        await asyncio.to_thread(process.join, 30)
        process.kill()

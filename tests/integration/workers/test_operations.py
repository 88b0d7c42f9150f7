"""Operations come to their end: over the death of processes, bugs, cancellation; imports make each task once."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from service.domain.errors import Conflict, Unavailable
from service.domain.operations import OperationState
from service.lifecycle import benchmark_making
from service.lifecycle.operations.contract import Job, JobCancelled, OperationContext
from service.lifecycle.operations.perform import MAX_STARTS, perform
from service.lifecycle.operations.registry import KINDS, Kind
from service.store import benchmarks, blob_refs, operations
from service.store.rows import OperationRow
from tests.integration.lifecycle.stage import Stage, until

PROGRAM = "tests.integration.workers.operations_program"
ROOT = Path(__file__).parents[3]
ITEMS = 450


def manifest(items: int = ITEMS, **head: Any) -> dict[str, Any]:
    return {
        "name": "set",
        "version": "1",
        "source": {"importer": "made_up", "importer_version": "1"},
        "items": [{"key": f"i{n}", "task": {"name": "t", "instruction": f"do {n}"}} for n in range(items)],
        **head,
    }


async def opened(stage: Stage, body: dict[str, Any], indent: int | None = None) -> str:
    """Queue the import of a manifest that was uploaded; another indent is another blob with the same content."""
    sha, size = stage.blobs.store_bytes(json.dumps(body, indent=indent).encode())
    async with stage.db.transaction() as tx:
        row = await operations.create(tx, stage.project.id, "benchmark_import", {"manifest_sha256": sha})
        await blob_refs.add_refs(tx, stage.project.id, operations.OWNER, row.id, [(sha, size)])
    return row.id


async def operation(stage: Stage, operation_id: str) -> OperationRow:
    async with stage.db.reading() as tx:
        row = await operations.get(tx, stage.project.id, operation_id)
    assert row is not None
    return row


async def made(stage: Stage) -> tuple[int, int]:
    """Count the benchmarks and tasks that there are."""
    async with stage.db.reading() as tx:
        row = (await tx.execute(text("SELECT (SELECT count(*) FROM benchmarks), (SELECT count(*) FROM tasks)"))).one()
    return row[0], row[1]


def context(stage: Stage) -> OperationContext:
    return OperationContext(stage.db, stage.blobs, first_pause_s=0.01)


@asynccontextmanager
async def process(*arguments: str | Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(sys.executable, "-m", PROGRAM, *map(str, arguments), cwd=ROOT)
    try:
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
        await asyncio.wait_for(started.wait(), 20)


@pytest.mark.fault(111, 123, 125)
async def test_an_import_goes_on_after_its_process_was_killed(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "crash-point").write_text("import.batch_made")
    operation_id = await opened(stage, manifest())
    async with process(stage.db.url, stage.blobs.root, tmp_path) as victim:
        assert await asyncio.wait_for(victim.wait(), 60) == -signal.SIGKILL
    assert (await operation(stage, operation_id)).state is OperationState.RUNNING
    assert await made(stage) == (0, benchmark_making.BATCH)

    async def is_over() -> bool:
        return (await operation(stage, operation_id)).ended_at is not None

    async with process(stage.db.url, stage.blobs.root):
        await until(is_over, 60)
    row = await operation(stage, operation_id)
    assert (row.state, row.done, row.total, row.tries) == (OperationState.SUCCEEDED, ITEMS, ITEMS, 2)
    assert await made(stage) == (1, ITEMS)
    assert row.result is not None
    async with stage.db.reading() as tx:
        assert (await benchmarks.counts(tx, [row.result["benchmark_id"]])) == {
            row.result["benchmark_id"]: {"ok": ITEMS}
        }


async def test_the_same_set_twice_at_once_is_one_benchmark(stage: Stage) -> None:
    both = [await opened(stage, manifest()), await opened(stage, manifest(), indent=1)]
    await asyncio.gather(*(perform(context(stage), operation_id) for operation_id in both))
    rows = [await operation(stage, operation_id) for operation_id in both]
    assert [row.state for row in rows] == [OperationState.SUCCEEDED] * 2
    results = [row.result or {} for row in rows]
    assert results[0]["benchmark_id"] == results[1]["benchmark_id"]
    assert sorted(result["created"] for result in results) == [False, True]
    assert await made(stage) == (1, ITEMS)


async def test_different_sets_of_one_name_at_once_are_one_benchmark_and_a_conflict(stage: Stage) -> None:
    both = [await opened(stage, manifest()), await opened(stage, manifest(notice="other"))]
    await asyncio.gather(*(perform(context(stage), operation_id) for operation_id in both))
    rows = [await operation(stage, operation_id) for operation_id in both]
    assert sorted(row.state for row in rows) == [OperationState.FAILED, OperationState.SUCCEEDED]
    problem = next(row.problem for row in rows if row.problem)
    assert (problem["type"], problem["status"]) == ("benchmark_version_taken", 409)
    assert (await made(stage))[0] == 1


@pytest.mark.fault(122)
async def test_a_cancelled_import_stops_between_batches_and_leaves_no_benchmark(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation_id = await opened(stage, manifest())
    make = benchmark_making.make_batch

    async def make_and_cancel(*given: Any) -> Any:
        async with stage.db.transaction() as tx:
            await operations.request_cancel(tx, stage.project.id, operation_id)
        return await make(*given)

    monkeypatch.setattr(benchmark_making, "make_batch", make_and_cancel)
    monkeypatch.setattr("service.lifecycle.operations.contract.REPORT_EVERY_S", 0)
    await perform(context(stage), operation_id)
    row = await operation(stage, operation_id)
    assert (row.state, row.result, row.problem) == (OperationState.CANCELLED, None, None)
    assert await made(stage) == (0, benchmark_making.BATCH)
    monkeypatch.undo()
    again = await opened(stage, manifest())
    await perform(context(stage), again)
    assert (await operation(stage, again)).state is OperationState.SUCCEEDED
    assert await made(stage) == (1, ITEMS)


async def test_blobs_of_an_operation_are_held_until_it_has_ended(stage: Stage) -> None:
    operation_id = await opened(stage, manifest(3))
    sha = (await operation(stage, operation_id)).spec["manifest_sha256"]
    async with stage.db.reading() as tx:
        assert await blob_refs.referenced(tx, [sha]) == {sha}
    await perform(context(stage), operation_id)
    async with stage.db.reading() as tx:
        assert await blob_refs.referenced(tx, [sha]) == set()


CALLS: list[str] = []


async def handle(_: OperationContext, job: Job) -> dict[str, Any]:
    """Do what the spec says, once per call."""
    CALLS.append(job.id)
    step = job.spec["steps"][min(CALLS.count(job.id), len(job.spec["steps"])) - 1]
    match step:
        case "bug":
            raise ZeroDivisionError("secret detail")
        case "busy":
            raise Unavailable("storage_full", "the content store is full")
        case "conflict":
            raise Conflict("made_up", "no", hint=1)
        case "stop":
            raise JobCancelled
        case _:
            for n in range(300):
                job.say(f"line {n}")
            await job.report(1, 1)
            return {"step": step}


@pytest.mark.parametrize(
    ("steps", "state", "calls", "problem"),
    [
        (["fine"], "succeeded", 1, None),
        (["bug", "busy", "fine"], "succeeded", 3, None),
        (["bug"], "failed", 3, ("internal_error", 500, "")),
        (["busy"], "failed", 3, ("storage_full", 503, "the content store is full")),
        (["conflict"], "failed", 1, ("made_up", 409, "no")),
        (["stop"], "cancelled", 1, None),
    ],
)
async def test_each_way_out_of_a_handler_is_an_end(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[str],
    state: str,
    calls: int,
    problem: tuple[str, int, str] | None,
) -> None:
    monkeypatch.setitem(KINDS, "made_up", Kind(f"{__name__}:handle", "benchmarks"))
    async with stage.db.transaction() as tx:
        row = await operations.create(tx, stage.project.id, "made_up", {"steps": steps})
    await perform(context(stage), row.id)
    row = await operation(stage, row.id)
    assert (row.state, CALLS.count(row.id)) == (state, calls)
    assert row.ended_at is not None
    found = row.problem and (row.problem["type"], row.problem["status"], row.problem["detail"])
    assert found == problem
    if state == "succeeded":
        assert row.result == {"step": "fine"}
        assert [line["text"] for line in row.log] == [f"line {n}" for n in range(100, 300)]
    await perform(context(stage), row.id)
    assert CALLS.count(row.id) == calls


async def test_what_kills_its_process_again_and_again_fails(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "made_up", Kind(f"{__name__}:handle", "benchmarks"))
    async with stage.db.transaction() as tx:
        row = await operations.create(tx, stage.project.id, "made_up", {"steps": ["fine"]})
        for _ in range(MAX_STARTS):
            await operations.begin(tx, row.id)
    await perform(context(stage), row.id)
    row = await operation(stage, row.id)
    assert (row.state, row.problem and row.problem["type"]) == (OperationState.FAILED, "internal_error")
    assert row.id not in CALLS


async def test_a_kind_that_nobody_knows_fails(stage: Stage) -> None:
    async with stage.db.transaction() as tx:
        row = await operations.create(tx, stage.project.id, "unheard_of", {})
    await perform(context(stage), row.id)
    assert ((await operation(stage, row.id)).problem or {})["type"] == "unknown_operation_kind"

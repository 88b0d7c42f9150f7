"""Gradings: once each, combined when all have ended, never a score from a failure, regrades."""

import asyncio

import pytest

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.events import EventType
from service.domain.run_states import Outcome, Phase
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import artifacts, blob_refs, events, grading_jobs, gradings, runs
from service.store.database import Database
from service.store.rows import GradingRow, RunRow
from tests.integration.store.seeds import Seeds, add_run

SPECS = [GraderSpec(method="exact", settings={"file": "a"}), GraderSpec(method="exact", settings={"file": "b"})]
GOOD = Verdict(VerdictState.GRADED, 1.0, 2.0)
FAILED = Verdict(VerdictState.FAILED, cause="grader_unavailable")


async def graded_run(db: Database, seeds: Seeds) -> tuple[RunRow, list[GradingRow]]:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        await runs.update(tx, run.id, deliverable_digest="d" * 64)
        await runs.set_phase(tx, run.id, Phase.GRADING)
        run = await runs.load(tx, run.id)
        return run, await gradings.enqueue(tx, run, SPECS)


async def finish(db: Database, grading: GradingRow, verdict: Verdict) -> RunRow:
    async with db.transaction() as tx:
        await gradings.finish(tx, grading.id, verdict)
        return await runs.load(tx, grading.run_id)


async def test_enqueue_is_idempotent(db: Database, seeds: Seeds) -> None:
    run, rows = await graded_run(db, seeds)
    async with db.transaction() as tx:
        assert await gradings.enqueue(tx, run, SPECS) == rows
        assert sorted(await grading_jobs.open_ids(tx)) == sorted(r.id for r in rows)
        assert len(await gradings.list_for_run(tx, run.id)) == 2


async def test_all_graded(db: Database, seeds: Seeds) -> None:
    _, (a, b) = await graded_run(db, seeds)
    async with db.transaction() as tx:
        started = await gradings.claim_start(tx, a.id)
        assert started is not None
        assert (started.state, started.tries) == (VerdictState.GRADING, 1)
        again = await gradings.claim_start(tx, a.id)
        assert again is not None
        assert again.tries == 2
        assert (await runs.load(tx, a.run_id)).verdict_state is VerdictState.GRADING
    half = await finish(db, a, GOOD)
    assert (half.phase, half.outcome, half.score) == (Phase.GRADING, None, None)
    done = await finish(db, b, GOOD)
    assert (done.phase, done.outcome, done.verdict_state) == (Phase.DONE, Outcome.GRADED, VerdictState.GRADED)
    assert (done.score, done.max_score) == (2.0, 4.0)
    assert done.graded_at is not None
    async with db.transaction() as tx:
        assert await gradings.claim_start(tx, a.id) is None
        assert await grading_jobs.open_ids(tx) == []
        verdicts = await events.read(tx, done.id, 0, 100, [EventType.VERDICT])
    assert [e.payload["grading_id"] for e in verdicts] == [a.id, b.id]


@pytest.mark.fault(125)
async def test_a_verdict_is_written_once(db: Database, seeds: Seeds) -> None:
    _, (a, b) = await graded_run(db, seeds)
    await asyncio.gather(*(finish(db, g, v) for g in (a, b) for v in (GOOD, FAILED) for _ in range(3)))
    async with db.reading() as tx:
        log = await events.read(tx, a.run_id, 0, 100)
        first = await gradings.list_for_run(tx, a.run_id)
    assert len([e for e in log if e.type == EventType.VERDICT]) == 2
    again = await finish(db, a, FAILED if first[0].state is VerdictState.GRADED else GOOD)
    async with db.reading() as tx:
        assert await gradings.list_for_run(tx, a.run_id) == first
    assert again.phase is Phase.DONE


async def test_points_may_be_whole_numbers_and_fractions(db: Database, seeds: Seeds) -> None:
    _, rows = await graded_run(db, seeds)
    points = [{"id": "a", "score": 1, "max_score": 1.5}, {"id": "b", "score": 0.5, "max_score": 2}, {"id": "c"}]
    await finish(db, rows[0], Verdict(VerdictState.GRADED, 1.5, 3.5, criteria=points))
    async with db.reading() as tx:
        found = await gradings.get(tx, rows[0].project_id, rows[0].id)
    assert found is not None
    assert [(c.score, c.max_score) for c in found.criteria] == [(1.0, 1.5), (0.5, 2.0), (None, None)]


async def test_a_failure_is_never_a_score(db: Database, seeds: Seeds) -> None:
    _, (a, b) = await graded_run(db, seeds)
    await finish(db, a, GOOD)
    done = await finish(db, b, FAILED)
    assert (done.outcome, done.verdict_state) == (Outcome.UNGRADED, VerdictState.FAILED)
    assert (done.score, done.max_score) == (None, None)


async def test_a_regrade_replaces_the_verdict_when_it_is_complete(db: Database, seeds: Seeds) -> None:
    run, rows = await graded_run(db, seeds)
    for row in rows:
        await finish(db, row, FAILED)
    async with db.transaction() as tx:
        c, d = await gradings.enqueue(tx, run, SPECS, round=2)
    assert (await finish(db, c, GOOD)).outcome is Outcome.UNGRADED
    done = await finish(db, d, GOOD)
    assert (done.phase, done.outcome, done.score) == (Phase.DONE, Outcome.GRADED, 2.0)


async def test_a_cancelled_run_stays_cancelled(db: Database, seeds: Seeds) -> None:
    run, rows = await graded_run(db, seeds)
    async with db.transaction() as tx:
        assert await runs.set_phase(tx, run.id, Phase.DONE, outcome=Outcome.CANCELLED)
    _, done = [await finish(db, row, GOOD) for row in rows]
    assert (done.outcome, done.score) == (Outcome.CANCELLED, None)


async def test_artifacts(db: Database, seeds: Seeds) -> None:
    run, _ = await graded_run(db, seeds)
    sha = "a" * 64
    entries = [
        ArtifactEntry(f"output/{i:04}", EntryKind.FILE, i, sha if i == 7 else f"{i:064x}", None, None, 1.5)
        for i in range(1200)
    ]
    odd = ArtifactEntry("output/link", EntryKind.SYMLINK, link_target="/etc/\0\ud800")
    async with db.transaction() as tx:
        for _ in range(2):
            await artifacts.insert_all(tx, run.id, Deliverable((*entries, odd)))
        first = await artifacts.list(tx, run.id, 0, 500)
        assert first.next is not None
        last = await artifacts.list(tx, run.id, int(first.next[0]) + 500, 500)
        assert (len(first.items), len(last.items), last.next) == (500, 201, None)
        found = await artifacts.by_path(tx, run.id, "output/0007")
        assert found is not None
        assert found.sha256 == sha
        assert await artifacts.by_path(tx, run.id, "output/\0") is None
        assert last.items[-1].link_target == "/etc/\ufffd\ufffd"
        assert await blob_refs.project_has(tx, seeds.project.id, [sha]) == {sha}
        await runs.set_phase(tx, run.id, Phase.DONE, outcome=Outcome.UNGRADED)
        await runs.delete(tx, run.id)
        assert await blob_refs.project_has(tx, seeds.project.id, [sha]) == set()

"""Which gradings are due, in which order: begun ones, by priority, fairly between projects, none before its time."""

import asyncio

from service.domain.grading_plans import GradingQueue
from service.domain.run_states import Phase
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import criteria, grading_jobs, gradings, runs
from service.store.database import Database, Tx
from service.store.gradings import Occasion
from service.store.rows import GradingRow
from tests.integration.store.seeds import Seeds, add_run, seed

FAILED = Verdict(VerdictState.FAILED, cause="judge_error")


async def add(tx: Tx, seeds: Seeds, count: int, queue: GradingQueue = "judges", priority: int = 0) -> list[GradingRow]:
    run = await add_run(tx, seeds)
    await runs.update(tx, run.id, deliverable_digest="d" * 64)
    await runs.set_phase(tx, run.id, Phase.GRADING)
    run = await runs.load(tx, run.id)
    specs = [GraderSpec(method="polls", settings={"n": n}) for n in range(count)]
    return await gradings.enqueue(tx, run, specs, queues={"polls": queue}, occasion=Occasion(run.plan, priority))


async def test_projects_take_turns_and_priority_comes_first(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "other")
        many = await add(tx, seeds, 20)
        few = await add(tx, other, 2)
        urgent = await add(tx, seeds, 1, priority=5)
        late = await add(tx, other, 1, priority=-1)
        people, rooms = await add(tx, seeds, 1, "people"), await add(tx, seeds, 1, "rooms")
        order = await grading_jobs.open_ids(tx, "judges")
        assert order[0] == urgent[0].id
        assert {row.id for row in few} < set(order[1:6]), "not behind the many"
        assert order[-1] == late[0].id
        assert len(order) == 24
        assert await grading_jobs.open_ids(tx, "rooms") == [rooms[0].id]
        assert people[0].id not in await grading_jobs.open_ids(tx)
        assert await gradings.claim_start(tx, many[-1].id) is not None
        assert (await grading_jobs.open_ids(tx, "judges", limit=2)) == [many[-1].id, urgent[0].id]


async def test_put_off_until_its_time_and_given_up_after_all_patience(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        one, two = await add(tx, seeds, 2)
        for _ in range(30):  # far more starts than crashes are borne
            assert await gradings.claim_start(tx, one.id) is not None
            assert await grading_jobs.put_off(tx, one.id, "judge_unavailable", 0.0, 3600)
        row = await gradings.claim_start(tx, one.id)
        assert row is not None
        assert (row.tries, row.put_offs, row.cause) == (1, 30, "judge_unavailable")
        assert await grading_jobs.put_off(tx, one.id, "judge_unavailable", 3600, 3600)
        assert await gradings.claim_start(tx, one.id) is None
        assert await grading_jobs.open_ids(tx) == [two.id]
        assert await gradings.claim_start(tx, two.id) is not None
        assert not await grading_jobs.put_off(tx, two.id, "judge_unavailable", 1, 0.0)
        await gradings.finish(tx, two.id, FAILED)
        assert await grading_jobs.put_off(tx, two.id, "judge_unavailable", 1, 0.0), "ended: nothing is left to decide"
        assert await grading_jobs.over_of(tx, [one.id, two.id, "grd_none"]) == {two.id, "grd_none"}


async def test_criteria_are_there_before_the_verdict_which_replaces_them(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        (one,) = await add(tx, seeds, 1)
    early = [
        {"id": "r2", "passed": None, "reason": "not yet\0"},
        {"id": "r3", "passed": True, "detail": {"a": "\ud800"}},
    ]
    for passed in (None, False):
        async with db.statement() as tx:
            await criteria.keep(tx, one.id, 2, [{**early[0], "passed": passed}, early[1]])
    async with db.transaction() as tx:
        found = (await criteria.page(tx, one.id)).items
        assert [(c.position, c.criterion, c.passed) for c in found] == [(2, "r2", False), (3, "r3", True)]
        rows = [{"id": "r1", "passed": True, "score": 1.0, "max_score": 1.0, "reason": "", "detail": {"x": 1}}]
        await gradings.finish(tx, one.id, Verdict(VerdictState.GRADED, 1.0, 1.0, criteria=rows))
        await criteria.keep(tx, one.id, 0, early)
        (last,) = (await criteria.page(tx, one.id)).items
        assert (last.criterion, last.score, last.detail) == ("r1", 1.0, {"x": 1})


async def test_cancel_and_replay_at_once_leave_one_of_both(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        rows = await add(tx, seeds, 3)
        await gradings.finish(tx, rows[0].id, FAILED)
    wanted = grading_jobs.Wanted(methods=["polls"])

    async def one(what: object) -> int:
        async with db.transaction() as tx:
            moved = grading_jobs.cancel if what == "cancel" else grading_jobs.replay
            return (await moved(tx, seeds.project.id, wanted)).count

    await asyncio.gather(*(one(what) for what in ("cancel", "replay") * 3))
    async with db.reading() as tx:
        states = [(row.state, row.cause) for row in await gradings.list_for_run(tx, rows[0].run_id)]
    assert set(states) <= {("failed", "cancelled"), ("failed", "judge_error"), ("pending", None)}

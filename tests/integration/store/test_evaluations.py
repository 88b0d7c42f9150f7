"""Evaluations in the store: counts that are those of the runs whatever happens at once, batches, slots, deletion."""

import asyncio
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import func, select

from service.domain.agents import AgentSpec
from service.domain.errors import Conflict
from service.domain.evaluation_plans import Slot
from service.domain.evaluations import AgentChoice, EvaluationSpec
from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode
from service.domain.tasks import TaskManifest
from service.store import agents, attempts, clock, events, run_batches, runs, tasks, webhooks
from service.store.database import Database, Tx
from service.store.evaluations import evaluations, members, slots
from service.store.rows import NewRun
from service.store.rows_evaluations import EvaluationRow
from service.store.secret_box import SecretBox
from service.store.tables import runs as runs_table
from service.store.tables_feeds import webhook_deliveries
from tests.integration.store.seeds import Seeds, add_host

SECTIONS = ("phase", "outcome", "ended_because")


@dataclass(frozen=True)
class Made:
    row: EvaluationRow
    agents: list[str]
    tasks: list[str]

    @property
    def id(self) -> str:
        return self.row.id


async def make(tx: Tx, seeds: Seeds, n_agents: int = 2, n_tasks: int = 3) -> Made:
    """A running evaluation without runs."""
    spec = EvaluationSpec(name="one", task_ids=["any"], agents=[AgentChoice(agent="any")])
    values = {"id": f"eval_{uuid.uuid4().hex}", "project_id": seeds.project.id, "name": "one", "state": "running"}
    body = spec.model_dump(mode="json")
    more = {name: body[name] for name in ("budget", "stop_rules", "concurrency")}
    row = await evaluations.create(tx, values | {"spec": body, "resolved": {}, "plan": "task@1", "author": "me"} | more)
    specs = [AgentSpec(scaffold="cmd@1", settings={"n": n}) for n in range(n_agents)]
    agent_ids = [(await agents.create(tx, seeds.project.id, one))[0].id for one in specs]
    manifests = [TaskManifest(name=f"t/{n}", instruction=f"do {n}") for n in range(n_tasks)]
    task_ids = [(await tasks.create(tx, seeds.project.id, one))[0].id for one in manifests]
    rows: list[dict[str, Any]] = [
        {"evaluation_id": row.id, "agent_id": one, "position": n, "samples": 1, "settings": {}}
        for n, one in enumerate(agent_ids)
    ]
    await members.add_agents(tx, rows)
    return Made(row, agent_ids, task_ids)


async def fill(tx: Tx, seeds: Seeds, made: Made, samples: int = 1) -> list[str]:
    news: list[NewRun] = [
        seeds.new_run(task_id=t, agent_id=a, sample=n + 1, evaluation_id=made.id)
        for n in range(samples)
        for t in made.tasks
        for a in made.agents
    ]
    ids = await run_batches.insert_many(tx, news)
    each = len(news) // len(made.agents)
    await members.count_inserted(tx, made.id, Phase.QUEUED, dict.fromkeys(made.agents, each))
    return ids


async def counted(tx: Tx, made: Made, agent_id: str | None = None) -> tuple[int, dict[str, dict[str, int]]]:
    """What there is, counted."""
    found: dict[str, dict[str, int]] = {}
    mine = [runs_table.c.evaluation_id == made.id]
    if agent_id is not None:
        mine.append(runs_table.c.agent_id == agent_id)
    for section in SECTIONS:
        column = runs_table.c[section]
        query = select(column, func.count()).where(*mine, column.is_not(None)).group_by(column)
        found[section] = {row[0]: row[1] for row in await tx.execute(query)}
    total = (await tx.execute(select(func.count()).select_from(runs_table).where(*mine))).scalar_one()
    return total, found


def kept(counts: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {section: {k: n for k, n in counts.get(section, {}).items() if n} for section in SECTIONS}


async def assert_counts(db: Database, made: Made) -> EvaluationRow:
    async with db.snapshot() as tx:
        row = await evaluations.load(tx, made.id)
        assert row is not None
        assert (row.total, kept(row.counts)) == await counted(tx, made)
        for member in await members.agents_of(tx, made.id):
            assert (member.total, kept(member.counts)) == await counted(tx, made, member.agent_id)
        done = row.counts.get("phase", {}).get("done", 0)
        assert (row.state == "done") == (done >= row.total)
        assert (row.ended_at is not None) == (row.state == "done")
    return row


async def one_step(db: Database, draw: random.Random, run_id: str) -> None:
    """Something that happens to a run; several things in one transaction now and then."""
    async with db.transaction() as tx:
        for _ in range(draw.choice((1, 1, 2))):
            match draw.choice(("held", "queued", "grading", "done", "done", "stop", "delete", "flag")):
                case "held":
                    await runs.set_phase(tx, run_id, Phase.HELD, hold={"reason": "x"})
                case "queued":
                    await runs.set_phase(tx, run_id, Phase.QUEUED)
                case "grading":
                    await runs.set_phase(tx, run_id, Phase.GRADING, ended_because=EndedBecause.WALL_CLOCK)
                case "done":
                    outcome = draw.choice((Outcome.GRADED, Outcome.UNGRADED))
                    await runs.set_phase(tx, run_id, Phase.DONE, outcome=outcome)
                case "stop":
                    await runs.request_stop(tx, run_id, StopMode.DISCARD)
                case "flag":
                    await runs.add_flags(tx, run_id, ["retried"])
                case _:
                    try:
                        await runs.delete(tx, run_id)
                    except Conflict:
                        continue
                    return


@pytest.mark.parametrize("seed_", [1, 2, 3])
async def test_counts_are_the_runs_after_any_history(db: Database, seeds: Seeds, seed_: int) -> None:
    """Five writers at once, with deletions; runs are added meanwhile."""
    draw = random.Random(seed_)
    async with db.transaction() as tx:
        made = await make(tx, seeds)
        ids = await fill(tx, seeds, made, samples=3)
    await assert_counts(db, made)

    async def writer(mine: Sequence[str]) -> None:
        for run_id in mine:
            for _ in range(4):
                async with db.reading() as tx:
                    if await runs.get(tx, seeds.project.id, run_id) is None:
                        break
                await one_step(db, draw, run_id)

    async def adder() -> None:
        for _ in range(4):
            async with db.transaction() as tx:
                await fill(tx, seeds, made)
                await evaluations.change(tx, made.id, **evaluations.by_counts())

    await asyncio.gather(*(writer(ids[n::5]) for n in range(5)), adder())
    await assert_counts(db, made)
    async with db.reading() as tx:
        left = list((await tx.execute(select(runs_table.c.id).where(runs_table.c.evaluation_id == made.id))).scalars())
    for run_id in left:
        async with db.transaction() as tx:
            await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.GRADED)
    assert (await assert_counts(db, made)).state == "done"


async def test_a_run_that_is_counted_rolls_back_with_its_count(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = await make(tx, seeds)
        ids = await fill(tx, seeds, made)

    async def breaks_off() -> None:
        async with db.transaction() as tx:
            await runs.set_phase(tx, ids[0], Phase.HELD, hold={"reason": "x"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await breaks_off()
    await assert_counts(db, made)


async def test_runs_of_a_batch_are_as_those_that_come_alone(db: Database, seeds: Seeds) -> None:
    """Same row but for numbers and times; same event; same change in the feed; claimed like any other."""
    async with db.transaction() as tx:
        made = await make(tx, seeds)
        alone = await runs.insert(tx, seeds.new_run(labels={"a": "1"}, flags=("policy_changed",)))
        (many,) = await run_batches.insert_many(tx, [seeds.new_run(labels={"a": "1"}, flags=("policy_changed",))])
        both = await runs.load(tx, many)
        differing = {"id", "revision", "created_at", "queued_at", "last_event_at", "updated_at"}
        for name in type(both).__dataclass_fields__:
            if name not in differing:
                assert getattr(both, name) == getattr(alone, name), name
        said = [(await events.read(tx, one, 0, 10)) for one in (alone.id, many)]
        assert [(e.seq, e.type, e.attempt, e.source, e.payload) for e in said[0]] == [
            (e.seq, e.type, e.attempt, e.source, e.payload) for e in said[1]
        ]
        assert both.queued_at is not None
        assert (await clock.now(tx)) >= both.queued_at
    async with db.transaction() as tx:
        host = await add_host(tx)
        claimed = await attempts.claim(tx, host, 10)
        assert {a.run_id for a in claimed} == {alone.id, many}
        await runs.add_flags(tx, many, ["retried"])
        await runs.set_phase(tx, many, Phase.GRADING)
        numbers = [e.seq for e in await events.read(tx, many, 0, 10)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert made.agents


async def test_a_batch_is_claimed_in_its_order(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = await make(tx, seeds, n_agents=3, n_tasks=8)
        ids = await fill(tx, seeds, made)
    assert ids == sorted(ids)
    taken: list[str] = []
    for n in range(6):
        async with db.transaction() as tx:
            host = await add_host(tx, f"h{n}", slots=4)
            taken += [a.run_id for a in await attempts.claim(tx, host, 4)]
    assert taken == ids


async def hook(tx: Tx, seeds: Seeds) -> None:
    await webhooks.create(
        tx, SecretBox(bytes(32)), seeds.project.id, "https://a.example.com/x", ["*"], labels={}, note=""
    )


async def deliveries(tx: Tx, type_: str) -> int:
    query = select(func.count()).select_from(webhook_deliveries).where(webhook_deliveries.c.type == type_)
    return (await tx.execute(query)).scalar_one()


async def test_what_waits_is_cancelled_in_bites_and_said_everywhere(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        await hook(tx, seeds)
        made = await make(tx, seeds)
        ids = await fill(tx, seeds, made)
        other = await runs.insert(tx, seeds.new_run())
    async with db.transaction() as tx:
        await runs.set_phase(tx, ids[0], Phase.HELD, hold={"reason": "x"})
        await runs.set_phase(tx, ids[1], Phase.RUNNING)
    cancelled: list[int] = []
    while not cancelled or cancelled[-1]:
        async with db.transaction() as tx:
            cancelled.append(await run_batches.cancel_waiting(tx, seeds.project.id, made.id, 2))
    assert cancelled == [2, 2, 1, 0]
    row = await assert_counts(db, made)
    assert kept(row.counts)["outcome"] == {"cancelled": 5}
    async with db.reading() as tx:
        assert (await runs.load(tx, other.id)).phase is Phase.QUEUED
        for run_id in (ids[0], ids[5]):
            run = await runs.load(tx, run_id)
            assert (run.phase, run.hold, run.stop_mode) == (Phase.DONE, None, StopMode.DISCARD)
            assert run.ended_at is not None
            log = await events.read(tx, run_id, 0, 10)
            assert [e.seq for e in log] == list(range(1, run.last_seq + 1))
            assert run.event_count == run.last_seq
            assert [e.payload for e in log][-2:] == [
                {"mode": "discard"},
                {"phase": "done", "outcome": "cancelled", "ended_because": "cancelled"},
            ]
        assert await deliveries(tx, "run.done") == 5


async def test_runs_that_are_being_claimed_are_not_waited_for(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = await make(tx, seeds)
        ids = await fill(tx, seeds, made)
    async with db.transaction() as holder:
        await slots.lock(holder, ids[:1])
        async with db.transaction() as tx:
            assert await run_batches.cancel_waiting(tx, seeds.project.id, made.id, 100) == 5


async def test_held_from_the_start(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        await hook(tx, seeds)
        made = await make(tx, seeds)
        news = [seeds.new_run(evaluation_id=made.id, agent_id=made.agents[0]) for _ in range(2)]
        ids = await run_batches.insert_many(tx, news, {"reason": "awaiting_upload"})
        await members.count_inserted(tx, made.id, Phase.HELD, {made.agents[0]: 2})
        assert (await runs.load(tx, ids[0])).hold == {"reason": "awaiting_upload"}
        assert await deliveries(tx, "run.held") == 2
        assert (await events.read(tx, ids[0], 0, 5))[0].payload["hold"] == {"reason": "awaiting_upload"}
    await assert_counts(db, made)


async def test_slots_are_told_oldest_first(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = await make(tx, seeds, 1, 1)
        (first,) = await fill(tx, seeds, made)
    async with db.transaction() as tx:
        await runs.set_phase(tx, first, Phase.DONE, outcome=Outcome.CANCELLED, ended_because=EndedBecause.CANCELLED)
        (second,) = await fill(tx, seeds, made)
    async with db.reading() as tx:
        found = await slots.filled(tx, made.id)
        assert [(one.run_id, one.counts) for one in found] == [(first, False), (second, True)]
        assert found[0].slot == Slot(made.agents[0], made.tasks[0], 1)
        assert await slots.at_work(tx, made.id, "", 10) == [second]


async def test_decisions_take_turns_and_runs_do_not_wait_for_them(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = await make(tx, seeds)
        ids = await fill(tx, seeds, made)
    entered = asyncio.Event()

    async def second() -> None:
        async with db.transaction() as tx:
            await evaluations.turn(tx, made.id)
            entered.set()

    async with db.transaction() as tx:
        await evaluations.turn(tx, made.id)
        waiting = asyncio.create_task(second())
        async with asyncio.timeout(30), db.transaction() as other:
            await runs.set_phase(other, ids[0], Phase.DONE, outcome=Outcome.GRADED)
        assert not entered.is_set()
    await asyncio.wait_for(waiting, 30)


async def test_one_with_runs_is_not_deleted(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = await make(tx, seeds)
        await fill(tx, seeds, made)
    for state, problem in (("running", "evaluation_under_way"), ("stopped", "evaluation_has_runs")):
        async with db.transaction() as tx:
            row = await evaluations.change(tx, made.id, state=state)
            with pytest.raises(Conflict) as refused:
                await evaluations.delete(tx, row)
            assert refused.value.type == problem

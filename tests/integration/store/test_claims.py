"""Claims: no run twice, priority, fair share, requirements, takeover, the watchdog's fence."""

import asyncio
from collections import Counter

import pytest

from service.domain.errors import FenceLost
from service.domain.events import EventType
from service.domain.run_states import AttemptState, EndedBecause, Flag, Outcome, Phase, StopMode
from service.store import attempts, events, hosts, runs
from service.store.database import Database
from service.store.rows import AttemptRow, HostRow
from tests.integration.store.seeds import Seeds, add_host, add_run, seed


async def _claim(db: Database, host: HostRow, slots: int) -> list[AttemptRow]:
    async with db.transaction() as tx:
        return await attempts.claim(tx, host, slots)


async def test_a_claim_makes_an_attempt_with_a_fence(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
    (attempt,) = await _claim(db, host, 4)
    async with db.reading() as tx:
        after = await runs.load(tx, run.id)
        log = await events.read(tx, run.id, 0, 100)
    assert (attempt.run_id, attempt.n, attempt.state, attempt.runtime) == (run.id, 1, AttemptState.CLAIMED, "runc")
    assert after.phase is Phase.PROVISIONING
    assert after.attempt == 1
    assert after.queue_s is not None
    assert after.revision > run.revision
    assert [e.type for e in log] == [EventType.RUN_PHASE, EventType.RUN_PHASE, EventType.ATTEMPT_STARTED]
    assert [e.seq for e in log] == [1, 2, 3]
    assert await _claim(db, host, 4) == []


async def test_twenty_claimers_take_each_run_once_and_share_fairly(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        for _ in range(40):
            await add_run(tx, seeds)
        for _ in range(20):
            await add_run(tx, other)
        fleet = [await add_host(tx, f"h{i:02}", slots=1) for i in range(20)]
    first = [a for taken in await asyncio.gather(*(_claim(db, host, 1) for host in fleet)) for a in taken]
    async with db.reading() as tx:
        owners = Counter([(await runs.load(tx, a.run_id)).project_id for a in first])
    assert len(first) == len({a.run_id for a in first}) == 20
    assert owners == {seeds.project.id: 10, other.project.id: 10}
    rest = [a for taken in await asyncio.gather(*(_claim(db, host, 3) for host in fleet)) for a in taken]
    everything = [*first, *rest]
    while more := await _claim(db, fleet[0], 60):
        everything += more
    assert len(everything) == len({a.run_id for a in everything}) == 60
    assert len({a.fence for a in everything}) == 60


async def test_priority_then_age(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = [await add_run(tx, seeds, priority=p) for p in (0, 5, 0, 9)]
        host = await add_host(tx)
    order = [(await _claim(db, host, 1))[0].run_id for _ in made]
    assert order == [made[i].id for i in (3, 1, 0, 2)]


async def test_priority_goes_before_fairness(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        low = await add_run(tx, other)
        high = [await add_run(tx, seeds, priority=1) for _ in range(3)]
        host = await add_host(tx)
    order = [(await _claim(db, host, 1))[0].run_id for _ in range(4)]
    assert order == [*(r.id for r in high), low.id]


async def test_requirements(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        await add_run(tx, seeds, environment="desktop")
        await add_run(tx, seeds, runtime="runsc-planted")
        fits = await add_run(tx, seeds, runtime="runc")
        host = await add_host(tx)
        drained = await add_host(tx, "h2", state="draining")
    assert await _claim(db, drained, 9) == []
    assert [a.run_id for a in await _claim(db, host, 9)] == [fits.id]


async def test_untrusted_work_goes_to_runtimes_that_the_host_names_for_it(db: Database) -> None:
    async with db.transaction() as tx:
        wild = await seed(tx, "wild", untrusted=True)
        any_runtime, named = await add_run(tx, wild), await add_run(tx, wild, runtime="runc")
        plain = await add_host(tx, runtimes=("runc", "runsc-planted"))
        facts = {"untrusted_runtimes": ["runsc-planted"]}
        safe = await add_host(tx, "h2", runtimes=("runc", "runsc-planted"), facts=facts)
    assert await _claim(db, plain, 9) == []
    (attempt,) = await _claim(db, safe, 9)
    assert (attempt.run_id, attempt.runtime) == (any_runtime.id, "runsc-planted")
    async with db.reading() as tx:
        assert (await runs.load(tx, named.id)).phase is Phase.QUEUED


async def test_a_full_project_does_not_hide_what_others_skip(db: Database, seeds: Seeds) -> None:
    """Runs locked by another claimer are passed over, however many there are."""
    async with db.transaction() as tx:
        for _ in range(70):
            await add_run(tx, seeds)
        a, b = await add_host(tx, "a"), await add_host(tx, "b")
    async with db.transaction() as held:
        taken = await attempts.claim(held, a, 60)
        others = await _claim(db, b, 5)
    assert len(others) == 5
    assert not {x.run_id for x in taken} & {x.run_id for x in others}


async def test_takeover_refuses_the_zombie(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        await add_run(tx, seeds)
        host = await add_host(tx)
    (old,) = await _claim(db, host, 1)
    async with db.transaction() as tx:
        (new,) = await attempts.takeover(tx, host.id, "e2")
    assert new.fence > old.fence
    assert new.state is old.state
    with pytest.raises(FenceLost):
        async with db.transaction() as tx:
            await attempts.advance(tx, old, AttemptState.BOUND, sandbox_id="stolen")
    with pytest.raises(FenceLost):
        async with db.transaction() as tx:
            await attempts.end_lost(tx, old, EndedBecause.INFRA_ERROR, {})
    assert await _claim(db, host, 1) == []
    async with db.transaction() as tx:
        assert not await hosts.beat(tx, host.id, "e1")
        assert await hosts.beat(tx, host.id, "e2")
        bound = await attempts.advance(tx, new, AttemptState.BOUND, sandbox_id="mine")
        assert await attempts.live_sandbox_ids(tx, host.id) == {"mine"}
    assert bound.bound_at is not None


async def _end_lost(db: Database, attempt: AttemptRow) -> None:
    async with db.transaction() as tx:
        await attempts.end_lost(tx, attempt, EndedBecause.PROVISION_FAILED, {"why": "no\0image"})


async def test_a_lost_attempt_is_repeated_while_attempts_are_left(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds, max_attempts=2)
        host = await add_host(tx)
    (first,) = await _claim(db, host, 1)
    await _end_lost(db, first)
    async with db.reading() as tx:
        again = await runs.load(tx, run.id)
    assert (again.phase, again.outcome, again.ended_because) == (Phase.QUEUED, None, None)
    assert again.flags == (Flag.RETRIED,)
    (second,) = await _claim(db, host, 1)
    assert second.n == 2
    with pytest.raises(FenceLost):
        await _end_lost(db, first)
    await _end_lost(db, second)
    async with db.reading() as tx:
        done = await runs.load(tx, run.id)
        kept = await attempts.list_for_run(tx, run.id)
    assert (done.phase, done.outcome) == (Phase.DONE, Outcome.UNGRADED)
    assert done.ended_because is EndedBecause.PROVISION_FAILED
    assert done.ended_at is not None
    assert [a.state for a in kept] == [AttemptState.LOST, AttemptState.LOST]
    assert done.score is None


async def test_a_lost_attempt_of_a_stopped_run_is_not_repeated(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
    (attempt,) = await _claim(db, host, 1)
    async with db.transaction() as tx:
        asked = await runs.request_stop(tx, run.id, StopMode.COLLECT)
    assert (asked.phase, asked.stop_mode) == (Phase.PROVISIONING, StopMode.COLLECT)
    await _end_lost(db, attempt)
    async with db.reading() as tx:
        done = await runs.load(tx, run.id)
    assert (done.phase, done.outcome, done.ended_because) == (Phase.DONE, Outcome.CANCELLED, EndedBecause.CANCELLED)


@pytest.mark.parametrize("mode", list(StopMode))
async def test_stop_while_queued_cancels_at_once(db: Database, seeds: Seeds, mode: StopMode) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
        done = await runs.request_stop(tx, run.id, mode)
    assert (done.phase, done.outcome) == (Phase.DONE, Outcome.CANCELLED)
    assert await _claim(db, host, 1) == []
    async with db.transaction() as tx:
        again = await runs.request_stop(tx, run.id, StopMode.DISCARD)
    assert again == done


async def test_the_watchdog_ends_a_lost_host(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        made = [await add_run(tx, seeds) for _ in range(2)]
        host = await add_host(tx)
    claimed = await _claim(db, host, 2)
    async with db.transaction() as tx:
        sealed = await attempts.advance(tx, claimed[1], AttemptState.COLLECTED, ended_because=EndedBecause.COMPLETED)
    async with db.transaction() as tx:
        assert await hosts.stale(tx, 60) == []
        assert [h.id for h in await hosts.stale(tx, 0)] == [host.id]
        lost = await attempts.fence_lost_host(tx, host.id)
        assert await hosts.stale(tx, 0) == []
        assert not await hosts.beat(tx, host.id, host.epoch)
    assert {(a.run_id, a.state) for a in lost} == {
        (claimed[0].run_id, AttemptState.CLAIMED),
        (sealed.run_id, AttemptState.COLLECTED),
    }
    async with db.reading() as tx:
        after = {run.id: await runs.load(tx, run.id) for run in made}
        left = await attempts.live_of_host(tx, host.id)
    assert after[claimed[0].run_id].phase is Phase.QUEUED
    assert after[sealed.run_id].phase is Phase.COLLECTING
    assert after[sealed.run_id].ended_because is EndedBecause.COMPLETED
    assert left == []
    with pytest.raises(FenceLost):
        async with db.transaction() as tx:
            await events.append(tx, sealed.run_id, 1, sealed.fence, [])


async def test_advance_lets_the_run_follow(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
    (attempt,) = await _claim(db, host, 1)
    phases: list[Phase] = []
    async with db.transaction() as tx:
        for state in (AttemptState.BOUND, AttemptState.RUNNING, AttemptState.ENDED, AttemptState.COLLECTED):
            extra = {"ended_because": EndedBecause.COMPLETED} if state is AttemptState.ENDED else {}
            seconds = 60.0 if state is AttemptState.RUNNING else None
            attempt = await attempts.advance(tx, attempt, state, deadline_in_s=seconds, **extra)
            phases.append((await runs.load(tx, run.id)).phase)
        same = await attempts.advance(tx, attempt, AttemptState.COLLECTED)
        with pytest.raises(ValueError, match="back"):
            await attempts.advance(tx, attempt, AttemptState.RUNNING)
        after = await runs.load(tx, run.id)
        log = [e.type for e in await events.read(tx, run.id, 0, 100)]
    assert phases == [Phase.PROVISIONING, Phase.RUNNING, Phase.COLLECTING, Phase.COLLECTING]
    assert same == attempt
    assert after.started_at == attempt.started_at
    assert after.deadline_at is not None
    assert after.started_at is not None
    assert 59 < (after.deadline_at - after.started_at).total_seconds() < 61
    assert after.ended_because is EndedBecause.COMPLETED
    assert log.count(EventType.ATTEMPT_ENDED) == 1
    assert log.count(EventType.RUN_PHASE) == 4

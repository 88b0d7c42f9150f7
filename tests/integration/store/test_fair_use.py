"""Fair use: slots, shares, memory and disk; large runs wait, and do not starve (fault 97)."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text

from service.domain.limits import GIB, Limits
from service.domain.run_states import AttemptState, EndedBecause, Phase
from service.store import attempts, capacity, holds, hosts, projects, queue_places, runs
from service.store.database import Database
from service.store.rows import AttemptRow, HostRow
from tests.integration.store.seeds import Seeds, add_host, add_run, seed

ROOM = {"memory_usable_bytes": 8 * GIB, "disk_free_bytes": 100 * GIB, "disk_total_bytes": 200 * GIB}


def sized(memory: int, disk: int = GIB) -> Limits:
    return Limits(memory_bytes=memory, disk_bytes=disk)


async def take(db: Database, host: HostRow, slots: int = 9, **options: Any) -> list[str]:
    return [a.run_id for a in await claim(db, host, slots, **options)]


async def claim(db: Database, host: HostRow, slots: int = 9, **options: Any) -> list[AttemptRow]:
    async with db.transaction() as tx:
        return await attempts.claim(tx, host, slots, **options)


async def end(db: Database, attempt: AttemptRow) -> None:
    async with db.transaction() as tx:
        await attempts.end_lost(tx, attempt, EndedBecause.INFRA_ERROR, {}, retry=False)


async def new_host(db: Database, name: str = "h1", **facts: Any) -> HostRow:
    async with db.transaction() as tx:
        return await add_host(tx, name, facts=ROOM | facts)


async def submit(db: Database, seeds: Seeds, count: int = 1, **changes: Any) -> list[str]:
    async with db.transaction() as tx:
        return [(await add_run(tx, seeds, **changes)).id for _ in range(count)]


@pytest.mark.fault(97)
async def test_200_runs_on_2_slots_go_in_order_per_project_and_fairly_between(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        third = await seed(tx, "gamma")
    made = {
        seeds.project.id: await submit(db, seeds, 120),
        other.project.id: await submit(db, other, 60),
        third.project.id: await submit(db, third, 20),
    }
    owner = {run: project for project, ids in made.items() for run in ids}
    host = await new_host(db)
    live, order = list[AttemptRow](), list[str]()
    while True:
        taken = await claim(db, host, 2 - len(live))
        live += taken
        assert len(live) <= 2
        order += [a.run_id for a in taken]
        if not live:
            break
        await end(db, live.pop(0))
    assert len(order) == len(set(order)) == 200
    for project, ids in made.items():
        assert [r for r in order if owner[r] == project] == ids
    counts: Counter[str] = Counter()
    for run in order[:54]:  # while all three have something to do
        counts[owner[run]] += 1
        assert max(counts.values()) - min(counts[p] for p in made) <= 2, counts
    after_third = Counter(owner[r] for r in order[60:120])
    assert abs(after_third[seeds.project.id] - after_third[other.project.id]) <= 4, after_third


async def test_memory_is_promised_once(db: Database, seeds: Seeds) -> None:
    host = await new_host(db)
    first = await submit(db, seeds, 3, limits=sized(3 * GIB))
    small = await submit(db, seeds, 2, limits=sized(2 * GIB))
    assert await take(db, host) == [*first[:2], small[0]]
    assert await take(db, host) == []
    async with db.reading() as tx:
        room = await capacity.of_host(tx, host.id)
    assert room is not None
    assert (room.running, room.memory_promised_bytes, room.memory_left_bytes) == (3, 8 * GIB, 0)


async def test_memory_is_free_when_the_container_is_dead_and_disk_when_it_is_gone(db: Database, seeds: Seeds) -> None:
    host = await new_host(db, disk_free_bytes=5 * GIB)
    await submit(db, seeds, limits=sized(8 * GIB, 6 * GIB))
    (attempt,) = await claim(db, host)
    by_memory = await submit(db, seeds, limits=sized(8 * GIB, 4 * GIB))
    assert await take(db, host) == []
    async with db.transaction() as tx:
        attempt = await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.COMPLETED)
    assert await take(db, host) == by_memory
    await submit(db, seeds, limits=sized(GIB // 2, GIB))
    assert await take(db, host) == []
    async with db.transaction() as tx:
        await attempts.advance(tx, attempt, AttemptState.RELEASED)
    assert await take(db, host) == []  # its memory is taken by now
    async with db.reading() as tx:
        room = await capacity.of_host(tx, host.id)
    assert room is not None
    assert (room.memory_left_bytes, room.disk_promised_bytes) == (0, 4 * GIB)


async def test_a_full_disk_takes_nothing_and_quotas_are_bounded(db: Database, seeds: Seeds) -> None:
    full = await new_host(db, disk_free_bytes=9 * GIB, disk_watermark_bytes=10 * GIB)
    small = await submit(db, seeds, limits=sized(GIB, GIB))
    made = await submit(db, seeds, 4, limits=sized(GIB, 90 * GIB))
    assert await take(db, full) == []
    async with db.reading() as tx:
        hold = (await queue_places.holds_of(tx, small))[small[0]]
    assert (hold["reason"], hold["detail"]) == ("waiting_for_disk", "the disk has 9 GiB free, and 10 GiB are kept free")
    async with db.transaction() as tx:
        assert await hosts.beat(tx, full.id, full.epoch, {"disk_free_bytes": 100 * GIB}) == "up"
    assert await take(db, full) == [*small, *made[:2]]
    async with db.reading() as tx:
        hold = (await queue_places.holds_of(tx, made))[made[2]]
    assert (hold["reason"], hold["detail"]) == ("waiting_for_disk", "needs 90 GiB of disk, 19 GiB can be promised")
    assert (hold["position"], hold["project_position"]) == (1, 1)


async def test_a_host_that_says_nothing_of_itself_is_not_limited(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        host = await add_host(tx)
    made = await submit(db, seeds, 2, limits=sized(200 * GIB, 500 * GIB))
    assert await take(db, host) == made


async def test_a_project_never_has_more_than_its_slots(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        await projects.change(tx, seeds.project.id, max_runs=3)
        fleet = [await add_host(tx, f"h{i}") for i in range(8)]
    limited = await submit(db, seeds, 20)
    free = await submit(db, other, 20)
    for _ in range(3):
        await asyncio.gather(*(take(db, host, 2) for host in fleet))
    async with db.reading() as tx:
        rows = [await runs.load(tx, r) for r in limited]
        assert sum(r.phase is not Phase.QUEUED for r in rows) == 3
        assert {(await runs.load(tx, r)).phase for r in free} == {Phase.PROVISIONING}
        hold = (await queue_places.holds_of(tx, limited))[limited[3]]
    assert (hold["reason"], hold["detail"]) == ("project_slots", "the project has 3 runs at work of 3 at most")
    ((first, *_),) = [await attempts_of(db, limited[0])]
    await end(db, first)
    assert await take(db, fleet[0]) == [limited[3]]
    async with db.transaction() as tx:
        await projects.change(tx, seeds.project.id, max_runs=0)
    await end(db, (await attempts_of(db, limited[1]))[0])
    assert await take(db, fleet[0]) == []


async def attempts_of(db: Database, run_id: str) -> list[AttemptRow]:
    async with db.reading() as tx:
        return await attempts.list_for_run(tx, run_id)


async def test_small_runs_pass_a_large_one_until_it_has_waited(db: Database, seeds: Seeds) -> None:
    host = await new_host(db)
    await submit(db, seeds, limits=sized(2 * GIB))
    (running,) = await claim(db, host)
    large = await submit(db, seeds, limits=sized(7 * GIB))
    small = await submit(db, seeds, 2, limits=sized(2 * GIB))
    assert await take(db, host, 1) == small[:1]
    (passing,) = await attempts_of(db, small[0])
    await asyncio.sleep(0.02)
    assert await take(db, host, 1, reserve_after_s=0.01) == []
    await end(db, running)
    assert await take(db, host, 1, reserve_after_s=0.01) == []
    await end(db, passing)
    assert await take(db, host, 2, reserve_after_s=0.01) == large


async def test_one_host_reserves_and_the_others_go_on(db: Database, seeds: Seeds) -> None:
    a, b, little = [await new_host(db, name) for name in ("a", "b")] + [
        await new_host(db, "c", memory_usable_bytes=4 * GIB)
    ]
    await submit(db, seeds, 2, limits=sized(3 * GIB))
    (on_a,) = await claim(db, a, 1)
    assert len(await take(db, b, 1)) == 1
    large = await submit(db, seeds, limits=sized(6 * GIB))
    small = await submit(db, seeds, 6, limits=sized(GIB))
    await asyncio.sleep(0.02)
    now = {"reserve_after_s": 0.01}
    assert await take(db, b, 1, **now) == []  # as much left as on a, and the later name
    assert await take(db, a, 1, **now) == small[:1]
    assert await take(db, little, 1, **now) == small[1:2]
    await end(db, on_a)
    assert await take(db, a, 1, **now) == large or await take(db, b, 1, **now) == large


async def test_a_run_that_no_host_could_ever_hold_is_held_in_words(db: Database, seeds: Seeds) -> None:
    await new_host(db)
    await new_host(db, "h2", memory_usable_bytes=24 * GIB)
    big = await submit(db, seeds, limits=sized(64 * GIB))
    wide = await submit(db, seeds, limits=sized(GIB, 500 * GIB))
    await submit(db, seeds, limits=sized(24 * GIB))
    async with db.transaction() as tx:
        assert await holds.hold_unplaceable(tx, 3600) == []
        assert await holds.hold_unplaceable(tx, 0) == big + wide
        first, second = [await runs.load(tx, r) for r in big + wide]
    assert first.hold is not None
    assert second.hold is not None
    assert first.phase is Phase.HELD
    assert first.hold["reason"] == "no_host_large_enough"
    assert first.hold["detail"] == "needs 64 GiB of memory, the largest host has 24 GiB"
    assert second.hold["detail"] == "needs 500 GiB of disk, the largest host can promise 400 GiB"
    async with db.transaction() as tx:
        assert await holds.release_placeable(tx) == []
    await new_host(db, "h3", memory_usable_bytes=64 * GIB)
    async with db.transaction() as tx:
        assert await holds.release_placeable(tx) == big


async def test_places_follow_the_order_of_claims(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        host = await add_host(tx)
    mine, theirs = await submit(db, seeds, 5), await submit(db, other, 3)
    urgent = await submit(db, other, priority=7)
    running = await take(db, host, 2)
    async with db.reading() as tx:
        found = await queue_places.holds_of(tx, [*mine, *theirs, *urgent])
        assert set(found) == {*mine, *theirs, *urgent} - {*running}
    by_place = sorted(found, key=lambda r: found[r]["position"])
    assert [found[r]["position"] for r in by_place] == [*range(1, len(found) + 1)]
    assert by_place == await take(db, host, 20)


async def test_places_far_down_are_unknown_and_cheap(db: Database, seeds: Seeds) -> None:
    (first,) = await submit(db, seeds)
    async with db.transaction() as tx:
        await tx.execute(text("""
            INSERT INTO runs (id, project_id, phase, task_id, agent_id, limits, environment, queued_at)
            SELECT 'run_many_' || n, project_id, phase, task_id, agent_id, limits, environment, queued_at + n * interval '1 ms'
            FROM runs CROSS JOIN generate_series(1, 1500) AS n WHERE id = :id"""), {"id": first})  # fmt: skip
        found = await queue_places.holds_of(tx, [first, "run_many_999", "run_many_1000"])
    assert [found[r]["position"] for r in (first, "run_many_999", "run_many_1000")] == [1, 1000, None]
    assert found["run_many_1000"]["reason"] == "no_host"

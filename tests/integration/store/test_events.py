"""The event log: dense numbers whatever the interleaving, fences, repetitions, what PostgreSQL refuses."""

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.errors import FenceLost, NotFound
from service.domain.events import EventType, NewEvent
from service.domain.limits import PAYLOAD_BYTES
from service.domain.run_states import StopMode
from service.store import attempts, blob_refs, events, runs
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.rows import AttemptRow
from tests.integration.store.seeds import Seeds, add_host, add_run

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def new(source: str, offset: int, **payload: Any) -> NewEvent:
    return NewEvent(EventType.OUTPUT, payload, source, offset, T0 + timedelta(seconds=offset))


async def claimed(db: Database, seeds: Seeds) -> AttemptRow:
    async with db.transaction() as tx:
        await add_run(tx, seeds)
        host = await add_host(tx)
    async with db.transaction() as tx:
        return (await attempts.claim(tx, host, 1))[0]


async def append(db: Database, a: AttemptRow, batch: list[NewEvent], fence: int | None = None) -> list[int]:
    async with db.transaction() as tx:
        return await events.append(tx, a.run_id, a.n, a.fence if fence is None else fence, batch)


async def read(db: Database, run_id: str, after: int = 0, **options: Any) -> list[Any]:
    async with db.reading() as tx:
        return await events.read(tx, run_id, after, 2000, **options)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
async def test_numbers_are_dense_under_eight_writers_and_repetitions(db: Database, seeds: Seeds, choice: int) -> None:
    """Two attempts, eight writers, every batch sent twice and overlapping: dense, each event once, in order per source."""
    dice = random.Random(choice)
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)

    async def writer(name: str, attempt: int) -> None:
        last = 0
        while last < 100:
            first, last = max(0, last - dice.randrange(5)), last + dice.choice([1, 7, 30, 80])
            batch = [new(name, o, n=o) for o in range(first, last)]
            for _ in range(2):
                async with db.transaction() as tx:
                    await events.append(tx, run.id, attempt, None, batch)

    async with asyncio.TaskGroup() as group:
        for i in range(8):
            group.create_task(writer(f"w{i}", 1 + i % 2))
    log = await read(db, run.id)
    keys = [(e.attempt, e.source, e.source_offset) for e in log]
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert len(set(keys)) == len(keys)
    for i in range(8):
        offsets = [e.source_offset for e in log if e.source == f"w{i}"]
        assert offsets == list(range(len(offsets)))
        assert len(offsets) >= 100
    assert all(a.ts <= b.ts for a, b in pairwise(log))
    async with db.reading() as tx:
        after = await runs.load(tx, run.id)
    assert after.last_seq == after.event_count == len(log)
    assert after.last_event_at == log[-1].ts


async def test_a_stale_fence_writes_nothing(db: Database, seeds: Seeds) -> None:
    a = await claimed(db, seeds)
    before = await read(db, a.run_id)
    for fence in (a.fence - 1, a.fence + 1):
        with pytest.raises(FenceLost):
            await append(db, a, [new("s", 0)], fence)
    async with db.transaction() as tx:
        await attempts.takeover(tx, a.host_id, "e2")
    with pytest.raises(FenceLost):
        await append(db, a, [new("s", 0)])
    assert await read(db, a.run_id) == before


async def test_an_append_returns_the_numbers_of_what_was_new(db: Database, seeds: Seeds) -> None:
    a = await claimed(db, seeds)
    first = await append(db, a, [new("s", 0), new("s", 1), new("s", 1)])
    assert await append(db, a, [new("s", 1), new("s", 2), new("t", 1)]) == [first[-1] + 1, first[-1] + 2]
    assert await append(db, a, [new("s", 2)]) == []
    assert await append(db, a, []) == []
    with pytest.raises(NotFound):
        async with db.transaction() as tx:
            await events.append(tx, "run_none", 1, None, [new("s", 1)])


@pytest.mark.parametrize("count", [3, 64, 65, 200])
async def test_insert_and_copy_store_the_same(db: Database, seeds: Seeds, count: int) -> None:
    a = await claimed(db, seeds)
    start = (await read(db, a.run_id))[-1].seq
    odd = 'tab\t nl\n back\\slash \\N "q" \N{PILE OF POO}'
    numbers = await append(db, a, [new("s", i, text=odd, n=i) for i in range(count)])
    log = await read(db, a.run_id, start)
    assert [e.seq for e in log] == numbers == list(range(start + 1, start + 1 + count))
    assert [e.payload for e in log] == [{"text": odd, "n": i} for i in range(count)]


async def test_what_postgresql_refuses_is_replaced_and_flagged(db: Database, seeds: Seeds) -> None:
    a = await claimed(db, seeds)
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    payloads = [
        {"t": "a\0b"},
        {"t": "\ud800"},
        {"k\0": 1, "nan": float("nan"), "inf": -float("inf")},
        {"deep": deep},
        {"big": 10**5000},
        {"literal": "\\u0000", "emoji": "\N{PILE OF POO}"},
    ]
    start = (await read(db, a.run_id))[-1].seq
    for batch in (payloads, payloads * 20):
        events_ = [NewEvent(EventType.AGENT_MESSAGE, p, f"m{len(batch)}", i, T0) for i, p in enumerate(batch)]
        assert len(await append(db, a, events_)) == len(batch)
    stored = [e.payload for e in await read(db, a.run_id, start)]
    assert stored[0] == {"t": "a\ufffdb", "lossy": True}
    assert stored[1] == {"t": "\ufffd", "lossy": True}
    assert stored[2] == {"k\ufffd": 1, "nan": None, "inf": None, "lossy": True}
    assert stored[3]["lossy"]
    assert len(json.dumps(stored[3])) < 200
    assert stored[4]["lossy"]
    assert stored[5] == payloads[5]


async def test_large_payloads_become_blobs(db: Database, seeds: Seeds, tmp_path: Path) -> None:
    a = await claimed(db, seeds)
    store = BlobStore(tmp_path / "blobs")
    log = events.EventLog(store)
    large = {"name": "shot", "data": "x" * (PAYLOAD_BYTES + 1), "n": 7}
    output = {"text": "y" * (2 * PAYLOAD_BYTES)}
    batch = [
        NewEvent(EventType.AGENT_MESSAGE, large, "m", 0, T0),
        NewEvent(EventType.OUTPUT, output, "o", 0, T0),
    ]
    async with db.transaction() as tx:
        await log.append(tx, a.run_id, a.n, a.fence, batch)
        project = (await runs.load(tx, a.run_id)).project_id
    message, text = (await read(db, a.run_id))[-2:]
    digest = message.payload["payload_blob"]
    assert message.payload == {
        "payload_blob": digest,
        "payload_bytes": len(json.dumps(large)) - 5,
        "name": "shot",
        "n": 7,
    }
    assert json.loads(store.read_bytes(digest)) == large
    assert text.payload == output
    async with db.reading() as tx:
        assert await blob_refs.project_has(tx, project, [digest]) == {digest}
    async with db.transaction() as tx:
        await events.append(tx, a.run_id, a.n, None, [NewEvent(EventType.NOTE, large, "n", 0, T0)])
    assert (await read(db, a.run_id))[-1].payload["payload_blob"] is None


async def test_reading_by_cursor_and_type(db: Database, seeds: Seeds) -> None:
    a = await claimed(db, seeds)
    await append(db, a, [new("s", i) for i in range(10)])
    assert [e.type for e in await read(db, a.run_id, types=[EventType.ATTEMPT_STARTED])] == ["attempt.started"]
    assert len(await read(db, a.run_id, 5)) == 8
    assert await read(db, a.run_id, 10**9) == []


async def test_events_go_with_their_run(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        await runs.request_stop(tx, run.id, StopMode.DISCARD)
        await runs.delete(tx, run.id)
        assert await runs.get(tx, seeds.project.id, run.id) is None
        assert await events.read(tx, run.id, 0, 10) == []

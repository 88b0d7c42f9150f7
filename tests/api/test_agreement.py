"""Three ways to follow a project end at the same picture, whatever the writers do (issue 3; NEEDS D4, D12)."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from sqlalchemy import text

from service.domain.errors import Conflict
from service.domain.run_states import Outcome, Phase
from service.store import runs
from service.store.database import Database
from service.store.rows import NewRun, RunFilter
from tests.api.helpers import Tenant
from tests.api.test_events import frames, opened

WRITERS = 8
TRANSACTIONS = 12
RUNS = 40
Seen = dict[str, int]
_OPEN = text("SELECT pg_current_xact_id()")
"""Gives the transaction its number early, so that what it writes later has a number that others have passed by then."""


class _RolledBackError(Exception):
    pass


@pytest.fixture
async def writing(shared_url: str) -> AsyncIterator[Database]:
    db = Database(shared_url, pool_size=WRITERS)
    yield db
    await db.close()


async def _truth(tenant: Tenant) -> Seen:
    async with tenant.state.db.reading() as tx:
        found = await runs.list(tx, tenant.project_id, RunFilter(), limit=500)
    return {r.id: r.revision for r in found.items}


async def _transaction(db: Database, tenant: Tenant, ids: list[str], new: NewRun, dice: random.Random) -> None:
    with suppress(_RolledBackError, Conflict):
        async with db.transaction() as tx:
            await tx.execute(_OPEN)
            await asyncio.sleep(dice.choice([0, 0, 0.01, 0.06]))
            for run_id in sorted(dice.sample(ids, dice.choice([1, 1, 2, 3]))):
                if await runs.get(tx, tenant.project_id, run_id) is not None:
                    await runs.add_flags(tx, run_id, [f"f{dice.randrange(10**6)}"])
            match dice.randrange(8):
                case 0:
                    await runs.insert(tx, new)
                case 1:
                    gone = await runs.insert(tx, new)
                    await runs.set_phase(tx, gone.id, Phase.DONE, outcome=Outcome.UNGRADED)
                    await runs.delete(tx, gone.id)
                case 2:
                    raise _RolledBackError
                case _:
                    pass
            await asyncio.sleep(dice.choice([0, 0, 0.005, 0.04]))


async def _writer(db: Database, tenant: Tenant, ids: list[str], new: NewRun, seed: int) -> None:
    dice = random.Random(seed)
    async with db.transaction() as tx:  # one of its own is deleted while everybody is looking
        made = await runs.insert(tx, new)
    for turn in range(TRANSACTIONS):
        await _transaction(db, tenant, ids, new, dice)
        if turn == TRANSACTIONS // 2:
            async with db.transaction() as tx:
                await runs.set_phase(tx, made.id, Phase.DONE, outcome=Outcome.UNGRADED)
                await runs.delete(tx, made.id)
    async with db.transaction() as tx:  # the last thing to see changes no count
        await runs.add_flags(tx, dice.choice(ids), ["last"])


async def _by_etag(tenant: Tenant, seen: Seen) -> None:
    headers: dict[str, str] = {}
    while True:
        answer = await tenant.client.get("/v1/runs?limit=500&fields=revision", headers=headers)
        if answer.status_code == 200:
            seen.clear()
            seen.update((r["id"], r["revision"]) for r in answer.json()["data"])
            headers = {"If-None-Match": answer.headers["etag"]}
        else:
            assert answer.status_code == 304
        await asyncio.sleep(0.03)


async def _by_feed(tenant: Tenant, seen: Seen) -> None:
    path, cursor = "/v1/changes?kinds=run&wait_s=5&limit=7", ""
    while True:
        body = await tenant.get(path + cursor)
        for change in body["data"]:
            _note(seen, change)
        cursor = f"&after={body['next_after']}"


async def _by_stream(tenant: Tenant, url: str, seen: Seen) -> None:
    async with opened(f"{url}/v1/changes?kinds=run", tenant.bearer) as response:
        async for frame in frames(response):
            if "data" in frame:
                _note(seen, json.loads(frame["data"]))


def _note(seen: Seen, change: dict[str, object]) -> None:
    if change["deleted"]:
        seen.pop(str(change["id"]), None)
    else:
        assert isinstance(change["revision"], int)
        seen[str(change["id"])] = change["revision"]


async def _settled(views: list[Seen], truth: Seen) -> bool:
    for _ in range(500):
        if all(v == truth for v in views):
            return True
        await asyncio.sleep(0.03)
    return False


@pytest.mark.parametrize("attempt", range(2))
async def test_etag_feed_and_stream_agree_under_eight_writers(
    tenant: Tenant, url: str, writing: Database, attempt: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    one = await tenant.run()
    async with writing.transaction() as tx:
        row = await runs.load(tx, one["id"])
        new = NewRun(row.project_id, row.task_id, row.agent_id, row.limits, row.environment)
        ids = [(await runs.insert(tx, new)).id for _ in range(RUNS)]
    views: list[Seen] = [{}, {}, {}]
    followers = [
        asyncio.create_task(follower)
        for follower in (_by_etag(tenant, views[0]), _by_feed(tenant, views[1]), _by_stream(tenant, url, views[2]))
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for i in range(WRITERS):
                group.create_task(_writer(writing, tenant, ids, new, seed + i))
        truth = await _truth(tenant)
        settled = await _settled(views, truth)
        wrong = [{k for k in v.keys() | truth.keys() if v.get(k) != truth.get(k)} for v in views]
        assert settled, wrong
        assert not any(f.done() for f in followers)
    finally:
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)

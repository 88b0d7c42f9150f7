"""Breakers in the table: who opens, who probes, and that queued runs are held meanwhile and come back in a ramp."""

import asyncio

import pytest

from service.domain.breakers import BreakerState
from service.domain.credentials import Purpose
from service.domain.models import Dialect, ModelSpec
from service.domain.run_states import Phase
from service.store import attempts, breakers, credentials, holds, models, runs
from service.store.breakers import Way
from service.store.database import Database
from service.store.rows import RunRow
from service.store.rows_models import ModelRow
from service.store.sealed_box import OpeningKey
from tests.integration.store.seeds import Seeds, add_host, add_run

SPEC = ModelSpec(
    name="acme/one", provider="acme", upstream_id="one", dialect=Dialect.OPENAI, base_url="https://api.acme.example/v1"
)


@pytest.fixture
async def model(db: Database, seeds: Seeds) -> ModelRow:
    async with db.transaction() as tx:
        return (await models.create(tx, seeds.project.id, SPEC, private=False))[0]


def way(model: ModelRow, credential: str = "") -> Way:
    return Way(model.spec.provider, model.id, credential, model.project_id)


async def _open(db: Database, where: Way, probe_in_s: float = 60) -> None:
    async with db.transaction() as tx:
        assert await breakers.open(tx, where, "it fails", probe_in_s) is not None


async def _phase(db: Database, run: RunRow) -> RunRow:
    async with db.reading() as tx:
        return await runs.load(tx, run.id)


async def test_queued_runs_are_held_and_consume_no_attempt(db: Database, seeds: Seeds, model: ModelRow) -> None:
    async with db.transaction() as tx:
        host = await add_host(tx)
        run = await add_run(tx, seeds, model_id=model.id)
        replay = await add_run(tx, seeds, model_id=model.id, replay_of=run.id)
        other = await add_run(tx, seeds)
    await _open(db, way(model))
    async with db.transaction() as tx:
        taken = await attempts.claim(tx, host, 10)
    assert {a.run_id for a in taken} == {replay.id, other.id}
    async with db.transaction() as tx:
        assert await holds.hold_cut_off(tx) == [run.id]
    held = await _phase(db, run)
    assert (held.phase, held.attempt) == (Phase.HELD, 0)
    assert held.hold is not None
    assert held.hold["reason"] == "provider_unavailable"
    assert "acme" in held.hold["detail"]
    assert held.hold["since"] < held.hold["next_probe_at"]
    async with db.transaction() as tx:
        assert await holds.release_cut_off(tx) == []
        assert await holds.release_placeable(tx) == []
        assert await breakers.take_probe(tx, way(model), 60) is None
    async with db.transaction() as tx:
        await breakers.set_by_hand(tx, way(model), BreakerState.CLOSED, "")
        assert await holds.release_cut_off(tx) == [run.id]
    back = await _phase(db, run)
    assert (back.phase, back.hold, back.attempt) == (Phase.QUEUED, None, 0)


async def test_one_probe_at_a_time_and_its_lease_ends(db: Database, model: ModelRow) -> None:
    await _open(db, way(model), probe_in_s=0)

    async def take() -> bool:
        async with db.transaction() as tx:
            return await breakers.take_probe(tx, way(model), 0.5) is not None

    assert sum(await asyncio.gather(*(take() for _ in range(8)))) == 1
    await asyncio.sleep(0.6)
    assert await take()
    async with db.transaction() as tx:
        failed = await breakers.probe_failed(tx, way(model), "still", 60)
    assert failed is not None
    assert (failed.state, failed.failures) == (BreakerState.OPEN, 2)
    assert not await take()


async def test_an_operators_word_stands(db: Database, model: ModelRow) -> None:
    async with db.transaction() as tx:
        await breakers.set_by_hand(tx, way(model), BreakerState.OPEN, "billing")
    async with db.transaction() as tx:
        assert await breakers.take_probe(tx, way(model), 60) is None
        assert await breakers.probe_answered(tx, way(model)) is None
        row = await breakers.get(tx, way(model))
    assert row is not None
    assert (row.state, row.manual, row.reason, row.next_probe_at) == (BreakerState.OPEN, True, "billing", None)


async def test_the_breaker_of_an_older_credential_holds_nothing(db: Database, seeds: Seeds, model: ModelRow) -> None:
    await _open(db, way(model))
    key = OpeningKey(bytes(range(32)))
    async with db.transaction() as tx:
        await credentials.register_key(tx, key.id, key.public)
        run = await add_run(tx, seeds, model_id=model.id)
        await holds.hold_cut_off(tx)
    assert (await _phase(db, run)).phase is Phase.HELD
    async with db.transaction() as tx:
        await credentials.put(tx, "model", seeds.project.id, model.id, Purpose.MODEL, "sk-new")
        assert await holds.release_cut_off(tx) == [run.id]


async def test_runs_come_back_in_a_ramp(db: Database, seeds: Seeds, model: ModelRow) -> None:
    await _open(db, way(model), probe_in_s=0)
    async with db.transaction() as tx:
        for _ in range(40):
            await add_run(tx, seeds, model_id=model.id)
        assert len(await holds.hold_cut_off(tx)) == 40
        assert await breakers.take_probe(tx, way(model), 60) is not None
        assert await breakers.probe_answered(tx, way(model)) is not None
    freed: list[int] = []
    for _ in range(3):
        async with db.transaction() as tx:
            freed.append(len(await holds.release_cut_off(tx, doubles_every_s=0.5)))
        await asyncio.sleep(0.5)
    assert freed[0] in range(4, 8)
    assert freed[0] <= freed[1] <= freed[2] < 40


async def test_what_waits_learns_of_the_next_probe(db: Database, seeds: Seeds, model: ModelRow) -> None:
    await _open(db, way(model), probe_in_s=0)
    async with db.transaction() as tx:
        run = await add_run(tx, seeds, model_id=model.id)
        await holds.hold_cut_off(tx)
    before = await _phase(db, run)
    async with db.transaction() as tx:
        await breakers.take_probe(tx, way(model), 60)
        await breakers.probe_failed(tx, way(model), "worse", 300)
    async with db.transaction() as tx:
        assert await holds.hold_cut_off(tx) == []
    after = await _phase(db, run)
    assert before.hold is not None
    assert after.hold is not None
    assert after.hold["next_probe_at"] > before.hold["next_probe_at"]
    assert after.revision > before.revision
    assert "worse" in after.hold["detail"]

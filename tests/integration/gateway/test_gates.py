"""The gate before a provider: it shuts after failures, lets one probe through, opens again, for all gateways alike."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from service.domain.breakers import BreakerRules, BreakerState
from service.domain.models import Dialect, ModelSpec
from service.gateway.breaker import Gates
from service.gateway.ports import GateClosed, GateKey, TryOutcome
from service.store import breakers, models
from service.store.breakers import Way
from service.store.database import Database, Tx
from service.store.notifications import Notifications
from service.store.rows_models import BreakerRow, ModelRow
from tests.integration.store.seeds import seed

RULES = BreakerRules(window_s=30, min_failures=5, first_probe_s=0.3, last_probe_s=1.0, probe_s=5)
SHUT_LONG = replace(RULES, first_probe_s=1.5, last_probe_s=2.0)
"""For who tries while it is shut: under load a moment is over before one looks."""


class Rig:
    def __init__(self, db: Database, notifications: Notifications, model: ModelRow) -> None:
        self.db, self.notifications, self.model = db, notifications, model
        self.running: list[asyncio.Task[None]] = []

    @property
    def way(self) -> Way:
        return Way("acme", self.model.id, "", self.model.project_id)

    def key(self, most: int | None = None) -> GateKey:
        return GateKey(self.model.project_id, "acme", self.model.id, None, most)

    def gates(self, rules: BreakerRules = RULES) -> Gates:
        made = Gates(self.db, self.notifications, rules)
        self.running.append(asyncio.create_task(made.run()))
        return made

    async def try_once(
        self, gates: Gates, outcome: TryOutcome, patience_s: float = 5.0, most: int | None = None
    ) -> None:
        async with gates.slot(self.key(most), patience_s) as slot:
            slot.report(outcome)

    async def fail(self, gates: Gates, outcome: TryOutcome = TryOutcome.FAILED) -> None:
        for _ in range(5):
            await self.try_once(gates, outcome)

    async def written(self, gates: Gates) -> None:
        """Let gates that nobody runs end what they still write."""
        running = asyncio.create_task(gates.run())
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def state(self, wanted: BreakerState) -> None:
        async with asyncio.timeout(10):
            while True:
                async with self.db.reading() as tx:
                    row = await breakers.get(tx, self.way)
                if (row.state if row else BreakerState.CLOSED) is wanted:
                    return
                await asyncio.sleep(0.02)


@pytest.fixture
async def rig(database_url: str) -> AsyncIterator[Rig]:
    db = Database(database_url)
    spec = ModelSpec(name="a/b", provider="acme", upstream_id="b", dialect=Dialect.OPENAI, base_url="https://a.example")
    async with db.transaction() as tx:
        seeds = await seed(tx, "p")
        model, _ = await models.create(tx, seeds.project.id, spec, private=False)
    async with Notifications(database_url) as notifications:
        made = Rig(db, notifications, model)
        yield made
        for task in made.running:
            task.cancel()
        await asyncio.gather(*made.running, return_exceptions=True)
    await db.close()


@pytest.mark.parametrize("outcome", [TryOutcome.FAILED, TryOutcome.LIMITED, TryOutcome.REJECTED])
async def test_it_shuts_and_one_waiting_request_is_the_probe(rig: Rig, outcome: TryOutcome) -> None:
    gates = rig.gates(SHUT_LONG)
    await rig.fail(gates, outcome)
    with pytest.raises(GateClosed):
        await rig.try_once(gates, TryOutcome.OK, patience_s=0.05)
    await rig.state(BreakerState.OPEN)
    order: list[str] = []

    async def waits(name: str) -> None:
        async with gates.slot(rig.key(), 10) as slot:
            order.append(name)
            if len(order) == 1:
                await asyncio.sleep(0.2)
                assert order == [name], "nobody passes beside the probe"
            slot.report(TryOutcome.OK)

    await asyncio.gather(*(waits(str(n)) for n in range(6)))
    assert len(order) == 6
    await rig.state(BreakerState.CLOSED)


async def test_a_failed_probe_makes_it_wait_longer(rig: Rig) -> None:
    gates = rig.gates()
    await rig.fail(gates)
    began = asyncio.get_running_loop().time()
    await rig.try_once(gates, TryOutcome.FAILED)
    await rig.try_once(gates, TryOutcome.OK)
    assert asyncio.get_running_loop().time() - began > 0.3 + 0.6 - 0.05
    await rig.state(BreakerState.CLOSED)


async def test_what_was_read_before_a_decision_does_not_undo_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates(rig.db, rig.notifications, SHUT_LONG)
    async with rig.db.transaction() as tx:  # a row that says closed
        await breakers.open(tx, rig.way, "for now", 0.0)
        await breakers.probe_answered(tx, rig.way)
    read = breakers.all_of

    async def decided_meanwhile(tx: Tx) -> list[BreakerRow]:
        rows = await read(tx)
        await rig.fail(gates)
        await rig.state(BreakerState.OPEN)
        return rows

    monkeypatch.setattr(breakers, "all_of", decided_meanwhile)
    await gates.sync()
    with pytest.raises(GateClosed):
        await rig.try_once(gates, TryOutcome.OK, patience_s=0.05)
    await rig.written(gates)


async def test_gateways_share_what_they_find(rig: Rig) -> None:
    one, other = rig.gates(SHUT_LONG), rig.gates(SHUT_LONG)
    await rig.try_once(other, TryOutcome.OK)
    await rig.fail(one)
    await rig.state(BreakerState.OPEN)
    await asyncio.sleep(0.2)
    with pytest.raises(GateClosed, match="cannot be reached"):
        await rig.try_once(other, TryOutcome.OK, patience_s=0.02)
    await rig.try_once(other, TryOutcome.OK)
    await rig.state(BreakerState.CLOSED)
    await rig.try_once(one, TryOutcome.OK, patience_s=2)


async def test_a_probe_is_made_up_where_nobody_waits(rig: Rig) -> None:
    gates = rig.gates()
    asked: list[Way] = []

    async def probe(way: Way) -> TryOutcome:
        asked.append(way)
        return TryOutcome.OK

    gates.probe_with(probe)
    await rig.fail(gates)
    await rig.state(BreakerState.OPEN)
    await rig.state(BreakerState.CLOSED)
    assert asked == [rig.way]


async def test_an_operator_shuts_and_opens_it_for_those_who_wait(rig: Rig) -> None:
    gates = rig.gates()
    await rig.try_once(gates, TryOutcome.OK)
    async with rig.db.transaction() as tx:
        await breakers.set_by_hand(tx, rig.way, BreakerState.OPEN, "billing")
    await asyncio.sleep(0.3)
    with pytest.raises(GateClosed, match="billing"):
        await rig.try_once(gates, TryOutcome.OK, patience_s=0.5)
    waiting = asyncio.create_task(rig.try_once(gates, TryOutcome.OK, patience_s=20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    async with rig.db.transaction() as tx:
        await breakers.set_by_hand(tx, rig.way, BreakerState.CLOSED, "")
    await asyncio.wait_for(waiting, 5)


async def test_never_more_at_once_than_the_entry_allows(rig: Rig) -> None:
    gates, now, peak = rig.gates(), 0, 0

    async def one() -> None:
        nonlocal now, peak
        async with gates.slot(rig.key(3), 10) as slot:
            now += 1
            peak = max(peak, now)
            await asyncio.sleep(0.02)
            now -= 1
            slot.report(TryOutcome.OK)

    await asyncio.gather(*(one() for _ in range(20)))
    assert peak == 3


async def test_retry_after_holds_everybody_back(rig: Rig) -> None:
    gates, loop = rig.gates(), asyncio.get_running_loop()
    async with gates.slot(rig.key(), 1) as slot:
        slot.report(TryOutcome.LIMITED, 0.4)
    began = loop.time()
    await rig.try_once(gates, TryOutcome.OK)
    assert loop.time() - began > 0.3

"""Half an hour without the provider in the middle of 200 runs, by a clock that skips idle time (NEEDS B12).

Everything but the time is real: gateway and its sockets, ledger, queue, watchdog, breaker in PostgreSQL. What stands in
for a sandbox is a coroutine that asks the model a few times, and ends its attempt by what the gateway says of it.
"""

import asyncio
import importlib
import socket
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partialmethod
from typing import Any

import httpx
import psycopg
import pytest

from service.domain.breakers import BreakerState
from service.domain.credentials import Purpose
from service.domain.grants import Grant, GrantedModel
from service.domain.models import Dialect, ModelSpec
from service.domain.policies import RunBudget
from service.domain.run_states import AttemptState, EndedBecause, Outcome, Phase
from service.gateway.auth import token_hash
from service.gateway.breaker import Gates
from service.gateway.credentials import Vault
from service.gateway.egress.serving import EgressServing
from service.gateway.endpoints import Endpoints
from service.gateway.forwarding import Forwarding, Parts
from service.gateway.front import NoServices
from service.gateway.http_server import HttpServing
from service.gateway.ledger import Ledger
from service.gateway.limits import GatewayLimits
from service.gateway.probing import Prober
from service.models.pricing import cost_of
from service.models.scripted.scenario import Fault, FaultKind, Scenario
from service.models.scripted.server import Scripted
from service.store import attempts, breakers, claims, credentials, events, models, runs
from service.store.database import Database
from service.store.notifications import Notifications
from service.store.rows import AttemptRow, HostRow
from service.store.rows_models import ModelRow
from service.store.sealed_box import OpeningKey
from service.workers.watchdog import Watching, look_once
from tests.integration.gateway.bench import messages
from tests.integration.gateway.virtual_time import SkippingDatabase, SkippingLoop, SkippingUpstream, Time, follow_clock
from tests.integration.store.seeds import add_host, add_run, seed

OUTAGE_S = 1800.0
RUNS, SLOTS, CALLS, THINKING_S = 200, 20, 2, 60.0
CLAIM_S, WATCH_S = 20.0, 30.0
LIMITS = GatewayLimits()
WATCHING = Watching(stale_s=1e9, lost_s=1e9)
DOWN = Scenario(name="down", faults=[Fault(kind=FaultKind.STATUS, turn=None, status=503)])
NO_KEEPING = httpx.Limits(max_keepalive_connections=0)
UP, AWAY = "sk-scripted-text", "sk-scripted-down"


class World:
    """200 runs, two hosts, one gateway, one provider that goes away and comes back."""

    def __init__(self, db: Database, provider: Scripted, gates: Gates, endpoints: Endpoints, model: ModelRow) -> None:
        self.db, self.provider, self.gates, self.endpoints, self.model = db, provider, gates, endpoints, model
        self.ended: Counter[str] = Counter()
        self.held = 0

    async def credential(self, secret: str) -> None:
        async with self.db.transaction() as tx:
            await credentials.put(tx, "model", self.model.project_id, self.model.id, Purpose.MODEL, secret)
            found = await models.load(tx, self.model.id)
        assert found is not None
        self.model = found

    async def host(self, host: HostRow) -> None:
        """Claim and work for ever."""
        async with asyncio.TaskGroup() as group:
            busy: set[asyncio.Task[None]] = set()
            while True:
                free = host.slots - len(busy)
                if free > 0:
                    async with self.db.transaction() as tx:
                        claimed = await claims.claim(tx, host, free)
                    for attempt in claimed:
                        task = group.create_task(self.work(attempt))
                        busy.add(task)
                        task.add_done_callback(busy.discard)
                await asyncio.sleep(CLAIM_S)

    async def work(self, attempt: AttemptRow) -> None:
        async with self.db.transaction() as tx:
            attempt = await attempts.advance(tx, attempt, AttemptState.BOUND, sandbox_id=f"box-{attempt.run_id}")
            attempt = await attempts.advance(tx, attempt, AttemptState.RUNNING, deadline_in_s=7200)
        key = (attempt.run_id, attempt.n)
        status, said = 0, ""
        async with self.asking(attempt) as client:
            for _ in range(CALLS):
                await asyncio.sleep(THINKING_S)
                answer = await client.post("/v1/messages", json=messages())
                status, said = answer.status_code, answer.text
                if status != 200:
                    break
        failed = self.endpoints.state(key).provider_failed
        await self.endpoints.close(key)
        cause = EndedBecause.PROVIDER_UNAVAILABLE if failed else EndedBecause.COMPLETED
        self.ended[cause] += 1
        async with self.db.transaction() as tx:
            if failed:
                await attempts.end_lost(tx, attempt, cause, {})
                return
            assert status == 200, said
            for state in (AttemptState.ENDED, AttemptState.COLLECTED, AttemptState.RELEASED):
                attempt = await attempts.advance(tx, attempt, state)
            await runs.set_phase(tx, attempt.run_id, Phase.DONE, outcome=Outcome.GRADED, ended_because=cause)

    @asynccontextmanager
    async def asking(self, attempt: AttemptRow) -> AsyncGenerator[httpx.AsyncClient]:
        model = self.model
        granted = GrantedModel(id=model.id, spec=model.spec, credential_id=model.credential_id, private=True)
        grant = Grant(
            run_id=attempt.run_id, attempt=attempt.n, fence=attempt.fence, project_id=model.project_id,
            token_hashes=[token_hash("token")], models=[granted], seconds_left=7200,
            budget=RunBudget(provider_patience_s=600),
        )  # fmt: skip
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await self.endpoints.open(grant, {80: listener})
        async with httpx.AsyncClient(
            base_url=url, headers={"x-api-key": "token"}, limits=NO_KEEPING, timeout=None, trust_env=False
        ) as client:
            yield client

    async def watch(self) -> None:
        while True:
            await look_once(self.db, WATCHING, set())
            async with self.db.reading() as tx:
                counts = await runs.counts_by_phase(tx, self.model.project_id)
            self.held = max(self.held, counts[Phase.HELD])
            await asyncio.sleep(WATCH_S)

    async def all_done(self) -> None:
        while True:
            async with self.db.reading() as tx:
                counts = await runs.counts_by_phase(tx, self.model.project_id)
            if counts[Phase.DONE] == RUNS:
                return
            await asyncio.sleep(WATCH_S)


@asynccontextmanager
async def open_world(url: str, provider: Scripted, clock: Time) -> AsyncGenerator[World]:
    db = SkippingDatabase(url, clock)
    upstream, vault = SkippingUpstream(clock, LIMITS), Vault(db, OpeningKey(bytes(range(32))))
    await vault.register()
    async with Notifications(url) as notifications:
        gates = Gates(db, notifications)
        parts = Parts(Ledger(db, "gate-1"), upstream, gates, vault, cost_of, LIMITS)
        gates.probe_with(Prober(db, parts))
        endpoints = Endpoints(
            Forwarding(parts), NoServices(), parts.ledger, HttpServing(256), LIMITS, EgressServing(db)
        )
        try:
            yield World(db, provider, gates, endpoints, await _prepare(db, provider))
        finally:
            await endpoints.shut()
            await parts.ledger.flush()
            await upstream.close()
            await db.close()


async def _prepare(db: Database, provider: Scripted) -> ModelRow:
    spec = ModelSpec(
        name="a/b", provider="acme", upstream_id="anthropic-1", dialect=Dialect.ANTHROPIC, base_url=provider.url
    )  # fmt: skip
    async with db.transaction() as tx:
        seeds = await seed(tx, "p")
        model, _ = await models.create(tx, seeds.project.id, spec, private=True)
        for _ in range(RUNS):
            await add_run(tx, seeds, model_id=model.id)
    return model


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_run_is_burnt(database_url: str, provider: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.add(DOWN)
    follow_clock(database_url)
    # The driver looks up every tenth of a second while it listens: each time a jump of the clock.
    monkeypatch.setattr(
        psycopg.AsyncConnection, "wait", partialmethod(psycopg.AsyncConnection[Any].wait, interval=3600.0)
    )
    clock = Time()
    for name in ("activity", "caller", "endpoints", "forwarding", "record", "trying"):
        module = importlib.import_module(f"service.gateway.{name}")
        if hasattr(module, "time"):
            monkeypatch.setattr(module, "time", clock)

    async def run() -> None:
        async with open_world(database_url, provider, clock) as world:
            await _outage(world)

    with asyncio.Runner(loop_factory=lambda: SkippingLoop(clock)) as runner:
        runner.run(run())


async def _outage(world: World) -> None:
    await world.credential(UP)
    async with world.db.transaction() as tx:
        hosts = [await add_host(tx, f"h{i}", slots=SLOTS // 2) for i in range(2)]
    loops = [world.gates.run(), world.watch(), *(world.host(host) for host in hosts)]
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        await asyncio.sleep(RUNS / SLOTS * CALLS * THINKING_S / 3)
        await world.credential(AWAY)
        before = len(world.provider.requests())
        await asyncio.sleep(OUTAGE_S)
        during = len(world.provider.requests()) - before
        await world.credential(UP)
        await world.all_done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await _every_run_is_graded(world)
    assert 0 < world.ended[EndedBecause.PROVIDER_UNAVAILABLE] <= SLOTS, "only what was under way lost its attempt"
    assert world.held > RUNS / 3
    assert during < 300, "a provider that is down is left alone"
    async with world.db.reading() as tx:
        (row,) = await breakers.all_of(tx)
    assert (row.state, row.failures) == (BreakerState.CLOSED, 0)


async def _every_run_is_graded(world: World) -> None:
    async with world.db.reading() as tx:
        found = await runs.list(tx, world.model.project_id, runs.RunFilter(), limit=500)
        assert Counter(r.outcome for r in found.items) == {Outcome.GRADED: RUNS}
        assert max(r.attempt for r in found.items) <= 2
        told = [await events.read(tx, r.id, 0, 1000, ["run.phase"]) for r in found.items]
    holds = [e.payload["hold"]["reason"] for log in told for e in log if e.payload.get("hold")]
    assert set(holds) == {"provider_unavailable"}

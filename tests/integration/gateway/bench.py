"""A gateway with one run (or several) on it, and clients as they are inside a sandbox."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from service.domain.grants import Grant, GrantedModel
from service.domain.models import Dialect, ModelSpec
from service.domain.run_states import AttemptState
from service.gateway.auth import token_hash
from service.gateway.body_keeper import BodyKeeper
from service.gateway.cassettes.replay import StoredTapes
from service.gateway.egress.serving import EgressServing
from service.gateway.endpoints import Endpoints
from service.gateway.forwarding import Forwarding, Parts
from service.gateway.front import NoServices
from service.gateway.http_server import HttpServing
from service.gateway.ledger import Ledger
from service.gateway.limits import GatewayLimits
from service.gateway.ports import NoCredentials, OpenGate, Purpose
from service.gateway.upstream import Upstream
from service.models.pricing import cost_of
from service.models.scripted.exchanges import Exchange
from service.models.scripted.server import Scripted
from service.store import attempts, claims, events, model_requests, runs
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.rows import AttemptRow, RunRow
from service.store.rows_requests import ModelRequestRow
from tests.integration.store.seeds import add_host, add_run, seed

TOKEN = "wsr_TESTTEST_0123456789-of-this-run"
LIMITS = GatewayLimits(first_pause_s=0.05, last_pause_s=0.2, settle_s=0)
PRICES = {
    "input_usd": "3", "output_usd": "15", "cached_input_usd": "0.3", "cache_write_usd": "3.75", "as_of": "2026-11-01",
}  # fmt: skip


class Key(NoCredentials):
    """The one credential of all models: the scenario's."""

    def __init__(self, secret: str) -> None:
        self.value = secret

    async def secret(self, project_id: str, credential_id: str, purpose: Purpose) -> str:
        return self.value


class GateBench:
    def __init__(
        self, db: Database, provider: Scripted, stack: AsyncExitStack, limits: GatewayLimits, blobs: BlobStore
    ) -> None:
        self.db, self.provider, self.stack = db, provider, stack
        self.key = Key("sk-scripted-text")
        self.ledger = Ledger(db, "gate-1")
        self.upstream = Upstream(limits)
        self.blobs, self.keeper = blobs, BodyKeeper(blobs)
        self.parts = Parts(
            self.ledger, self.upstream, OpenGate(), self.key, cost_of, limits, self.keeper, StoredTapes(db, blobs)
        )
        stack.callback(self.keeper.close)
        self.forwarding = Forwarding(self.parts)
        self.endpoints = Endpoints(
            self.forwarding, NoServices(), self.ledger, HttpServing(256), limits, EgressServing(db)
        )
        self._seeds: Any = None
        self._clients: list[httpx.AsyncClient] = []
        self._seen = 0
        self._host: Any = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, provider: Scripted, folder: Path, limits: GatewayLimits = LIMITS
    ) -> AsyncGenerator["GateBench"]:
        db = Database(url)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(db.close)
            made = cls(db, provider, stack, limits, BlobStore(folder / "blobs"))
            stack.push_async_callback(made.upstream.close)
            stack.push_async_callback(made.ledger.flush)
            stack.push_async_callback(made.endpoints.shut)
            stack.push_async_callback(made.close_clients)
            yield made

    def begin(self, scenario: str = "text") -> None:
        self._seen = max((one.number for one in self.provider.requests()), default=0)
        self.key.value = f"sk-scripted-{scenario}"

    def asked(self) -> list[Exchange]:
        """Return what reached the provider since :meth:`begin`."""
        return [one for one in self.provider.requests() if one.number > self._seen]

    async def close_clients(self) -> None:
        clients, self._clients = self._clients, []
        for client in clients:
            await client.aclose()

    def model(self, dialect: Dialect = Dialect.ANTHROPIC, **changes: Any) -> GrantedModel:
        base = self.provider.url + ("/v1" if dialect is Dialect.OPENAI else "")
        fields = {
            "name": f"test/{dialect}", "provider": str(dialect), "upstream_id": f"{dialect}-1", "dialect": dialect,
            "base_url": base, "prices": PRICES, "max_output_tokens": 1000,
        } | changes  # fmt: skip
        spec = ModelSpec.model_validate(fields)
        return GrantedModel(id=f"mdl_{dialect}", spec=spec, credential_id="cred_1", private=True)

    async def run(self) -> tuple[RunRow, AttemptRow]:
        """Return a run that has been claimed."""
        async with self.db.transaction() as tx:
            if self._seeds is None:
                self._seeds = await seed(tx, "p")
                self._host = await add_host(tx, "h1", "e1", slots=64)
            run = await add_run(tx, self._seeds)
        async with self.db.transaction() as tx:
            (claimed,) = await claims.claim(tx, self._host, 1)
            assert claimed.run_id == run.id
            attempt = await attempts.advance(tx, claimed, AttemptState.BOUND)
        return run, attempt

    async def grant(self, token: str = TOKEN, **changes: Any) -> Grant:
        run, attempt = await self.run()
        models = [self.model(dialect) for dialect in Dialect]
        fields: dict[str, Any] = {
            "run_id": run.id, "attempt": attempt.n, "fence": attempt.fence, "project_id": run.project_id,
            "token_hashes": [token_hash(token)], "models": models, "seconds_left": 600,
        }  # fmt: skip
        return Grant.model_validate(fields | changes)

    async def client(self, grant: Grant, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
        """Open the grant on a listener; return a client of it that shows the token."""
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        await self.endpoints.open(grant, {80: listener})
        shown = {"x-api-key": TOKEN} if headers is None else headers
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=shown, timeout=20, trust_env=False)
        self._clients.append(client)
        return client

    async def ledger_of(self, grant: Grant) -> list[ModelRequestRow]:
        await self.ledger.flush()
        async with self.db.reading() as tx:
            return await model_requests.list_for_run(tx, grant.run_id, 0, 1000)

    async def run_row(self, grant: Grant) -> RunRow:
        await self.ledger.flush()
        async with self.db.reading() as tx:
            return await runs.load(tx, grant.run_id)

    async def events_of(self, grant: Grant) -> list[dict[str, Any]]:
        async with self.db.reading() as tx:
            found = await events.read(tx, grant.run_id, 0, 1000, ["model.request", "provider.tools"])
        return [{"type": one.type, **one.payload} for one in found]


def messages(**changes: Any) -> dict[str, Any]:
    return {"model": "anthropic-1", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **changes}


async def until(check: Callable[[], Any], timeout_s: float = 5.0) -> None:
    """Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(0.02)

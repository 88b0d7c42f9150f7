"""A worker that works on one run, its bridge, and a client of the API."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from fastapi import FastAPI

from service.api.state import ApiConfig, ApiState
from service.domain.run_states import Phase
from service.lifecycle.context import Context
from service.lifecycle.ports import ModelAccess
from service.store import hosts, tokens
from service.store.rows import RunRow
from service.store.secret_box import SecretBox
from service.workers.attempt_loop import run_attempt
from service.workers.bridge import FACT, BridgePlace, serve_bridge
from tests.api.apps import app_of
from tests.integration.lifecycle.stage import Stage, until

BASE = "http://127.0.0.1:8040"


@dataclass(slots=True)
class Remote:
    stage: Stage
    place: BridgePlace
    http: httpx.AsyncClient
    app: FastAPI
    token: str
    worker: "asyncio.Task[None] | None" = None
    lease: str = ""
    models: ModelAccess | None = None
    """What the worker has of the gateway; null: none."""
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @classmethod
    @asynccontextmanager
    async def open(cls, stage: Stage) -> AsyncGenerator["Remote"]:
        state = ApiState(
            stage.db, stage.notifications, stage.blobs, ApiConfig(public_url=BASE), secrets=SecretBox(bytes(32))
        )
        place = BridgePlace.below(stage.spool_dir.parent, stage.host.id)
        async with stage.db.transaction() as tx:
            await hosts.register(tx, replace(stage.host, facts={FACT: place.fact}))
            _, secret = await tokens.mint(tx, stage.project.id, ["admin"])
        app = app_of(state)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=60) as client:
            made = cls(stage, place, client, app, secret)
            try:
                yield made
            finally:
                await made.kill_worker()

    async def agent(self, kind: str = "remote") -> str:
        return await self.stage.agent(f"by-{kind}", kind=kind)

    async def begin(self, agent: str | None = None, task: str | None = None, **fields: Any) -> RunRow:
        """Submit a run and let a worker bring it to ``running``."""
        run = await self.stage.submit(task or await self.stage.task(), agent or await self.agent(), **fields)
        await self.start_worker(run.id)
        await until(lambda: self.stage.has_event(run.id, "run.ready"))
        return run

    async def start_worker(self, run_id: str, **changes: Any) -> None:
        """A worker process of its own: it claims the run, or takes over what an earlier one left."""
        ctx = self.stage.context(**({} if self.models is None else {"models": self.models}), **changes)
        found = await self.stage.attempts(run_id)
        if found:
            attempt = await self._taken_over()
        else:
            attempt = await self.stage.claim(ctx)
        await self._stack.enter_async_context(serve_bridge(ctx, self.stage.host.id, self.place))
        self.worker = asyncio.create_task(run_attempt(ctx, attempt))

    async def _taken_over(self) -> Any:
        from service.store import attempts

        async with self.stage.db.transaction() as tx:
            (attempt,) = await attempts.takeover(tx, self.stage.host.id, self.stage.host.epoch)
        return attempt

    async def kill_worker(self) -> None:
        """As kill -9: nothing is finished, the sandbox goes on."""
        if self.worker is not None:
            self.worker.cancel()
            await asyncio.gather(self.worker, return_exceptions=True)
        await self._stack.aclose()
        self.worker, self._stack = None, AsyncExitStack()

    async def call(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        headers = {"Workstead-Lease": options.pop("lease", self.lease)}
        answer = await self.http.request(method, path, headers={**headers, **options.pop("headers", {})}, **options)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.headers.get("content-type", "").endswith("json") else answer.content

    async def claim(self, run_id: str, holder: str = "a loop") -> dict[str, Any]:
        lease: dict[str, Any] = await self.call("POST", f"/v1/runs/{run_id}/claim", 201, json={"holder": holder})
        self.lease = lease["lease"]
        return lease

    async def other_token(self, *scopes: str) -> str:
        async with self.stage.db.transaction() as tx:
            return (await tokens.mint(tx, self.stage.project.id, scopes))[1]

    async def exec(self, run_id: str, *argv: str, status: int = 200, **more: Any) -> Any:
        return await self.call("POST", f"/v1/runs/{run_id}/exec", status, json={"argv": list(argv), **more})

    async def end(self, run_id: str) -> RunRow:
        """Wait for the worker's last step, grade, return the run."""
        assert self.worker is not None
        await asyncio.wait_for(self.worker, 30)
        await self.stage.grade_all()
        assert await self.stage.is_in(run_id, Phase.DONE)
        return await self.stage.row(run_id)


def context_of(remote: Remote) -> Context:
    return remote.stage.contexts[-1]

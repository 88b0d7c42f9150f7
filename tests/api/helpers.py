"""Tenants, runs in every state, and a server for tests of the API."""

import asyncio
import hashlib
import secrets
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from service.api.server import uvicorn_config
from service.api.state import ApiState
from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.events import NewEvent
from service.domain.run_states import AttemptState, EndedBecause, Outcome, Phase
from service.store import artifacts, attempts, events, hosts, projects, runs, tokens
from service.store.rows import AttemptRow, HostRow

BASE = "http://127.0.0.1:8040"


@dataclass(frozen=True)
class Tenant:
    """A project as its users and the workers see it."""

    state: ApiState
    project_id: str
    client: httpx.AsyncClient
    secret: str

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}

    async def post(self, path: str, body: Any, status: int = 201, **headers: str) -> Any:
        answer = await self.client.post(path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def get(self, path: str, status: int = 200) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        answer = await self.client.put(f"/v1/blobs/{digest}", content=data)
        assert answer.status_code == 201, answer.text
        return digest

    async def token(self, *scopes: str) -> dict[str, str]:
        """Headers of a new token with these scopes."""
        async with self.state.db.transaction() as tx:
            _, secret = await tokens.mint(tx, self.project_id, scopes)
        return {"Authorization": f"Bearer {secret}"}

    async def task(self, **more: Any) -> Any:
        return await self.post("/v1/tasks", {"name": "t/one", "instruction": "work"} | more)

    async def agent(self, version: str = "1", **more: Any) -> Any:
        scaffold = {"name": "solver", "version": version, "kind": "command", "argv": ["true"]}
        answer = await self.client.post("/v1/scaffolds", json=scaffold)
        assert answer.status_code in (200, 201), answer.text
        if "model" in more:
            await self.model(more["model"])
        answer = await self.client.post("/v1/agents", json={"scaffold": f"solver@{version}"} | more)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def model(self, name: str) -> None:
        spec = {"name": name, "provider": "acme", "upstream_id": "one", "dialect": "openai"}
        answer = await self.client.post("/v1/models", json={**spec, "base_url": "https://api.acme.example.com/v1"})
        assert answer.status_code in (200, 201, 409), answer.text  # a test may have brought one of its own

    async def run(self, **more: Any) -> Any:
        """A queued run of a task and an agent that are made where they are missing."""
        answer = await self.client.post("/v1/tasks", json={"name": "t/one", "instruction": "work"})
        agent = await self.agent()
        return await self.post("/v1/runs", {"task": answer.json()["id"], "agent": agent["id"]} | more)

    async def claim(self, run_id: str) -> AttemptRow:
        """Let a host take the queue, which earlier tests' runs are in, too; return the run's attempt."""
        host = HostRow("host-1", "epoch-1", 100, ("runc",), ("base",))
        async with self.state.db.transaction() as tx:
            await hosts.register(tx, host)
            claimed: dict[str, AttemptRow] = {}
            while run_id not in claimed:
                more = {a.run_id: a for a in await attempts.claim(tx, host, 100)}
                assert more, (len(claimed), await runs.get(tx, self.project_id, run_id))
                claimed |= more
        return claimed[run_id]

    async def start(self, run_id: str) -> AttemptRow:
        """Bring a queued run to phase ``running``."""
        attempt = await self.claim(run_id)
        async with self.state.db.transaction() as tx:
            attempt = await attempts.advance(tx, attempt, AttemptState.BOUND, sandbox_id="box", runtime="runc")
            return await attempts.advance(tx, attempt, AttemptState.RUNNING, deadline_in_s=600)

    async def say(self, attempt: AttemptRow, *texts: str, first: int = 0) -> list[int]:
        """Append one output event per text."""
        new = [_output(first + i, text) for i, text in enumerate(texts)]
        async with self.state.db.transaction() as tx:
            return await events.append(tx, attempt.run_id, attempt.n, attempt.fence, new)

    async def seal(self, attempt: AttemptRow, files: Sequence[tuple[ArtifactEntry, bytes | None]]) -> AttemptRow:
        """End the attempt and seal ``files`` as its deliverable."""
        deliverable = Deliverable(tuple(entry for entry, _ in files))
        contents = [data for _, data in files if data is not None]
        for data in contents:
            await asyncio.to_thread(self.state.blobs.store_bytes, data)
        async with self.state.db.transaction() as tx:
            attempt = await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.COMPLETED)
            await artifacts.insert_all(tx, attempt.run_id, deliverable)
            await runs.update(
                tx,
                attempt.run_id,
                deliverable_digest=deliverable.digest(),
                deliverable_files=len(deliverable.files),
                deliverable_bytes=deliverable.total_bytes,
                deliverable_problems=deliverable.problems,
            )
            attempt = await attempts.advance(tx, attempt, AttemptState.COLLECTED)
            return await attempts.advance(tx, attempt, AttemptState.RELEASED)

    async def finish(self, run_id: str) -> None:
        """Bring a run to ``done`` without a verdict."""
        async with self.state.db.transaction() as tx:
            await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.UNGRADED)


def _output(offset: int, text: str) -> NewEvent:
    payload = {"stream": "stdout", "offset": offset, "bytes": len(text), "text": text}
    return NewEvent("output", payload, "stdout", offset, datetime.now(UTC))


def file_entry(path: str, data: bytes, mime: str | None = None) -> tuple[ArtifactEntry, bytes]:
    digest = hashlib.sha256(data).hexdigest()
    return ArtifactEntry(path, EntryKind.FILE, len(data), digest, mime), data


@asynccontextmanager
async def make_tenant(state: ApiState, app: FastAPI, name: str) -> AsyncGenerator[Tenant]:
    async with state.db.transaction() as tx:
        project = await projects.create(tx, f"{name}-{secrets.token_hex(6)}")
        _, secret = await tokens.mint(tx, project.id, ["admin"])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        yield Tenant(state, project.id, client, secret)


@asynccontextmanager
async def served(app: FastAPI, sock: socket.socket | None = None) -> AsyncGenerator[str]:
    """Serve ``app`` on ``sock``, else on a free port of loopback, in this event loop."""
    server = uvicorn.Server(uvicorn_config(app, "127.0.0.1", 0, graceful_s=1))
    task = asyncio.create_task(server.serve(None if sock is None else [sock]))
    while not server.started:
        assert not task.done(), task.result()
        await asyncio.sleep(0.01)
    port = (sock or server.servers[0].sockets[0]).getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task

"""Proxies of attempts: what each decides goes into its run's event log, in batches."""

import asyncio
import contextlib
import secrets
import socket
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from service.domain.errors import Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.grants import Grant
from service.domain.policies import NetworkRules
from service.gateway.egress.proxy import EgressProxy
from service.lifecycle.clock import Clock
from service.store import events, runs
from service.store.database import Database

FLUSH_S = 0.2
MOST_EVENTS = 5_000
"""Decisions of one attempt that become events; the rest are only counted, in the last one."""
MOST_WAITING = 1_000
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProxyServing(Protocol):
    async def start(self, grant: Grant, sock: socket.socket) -> "ServedProxy": ...


@dataclass(slots=True)
class ServedProxy:
    """One planted proxy; ends like a listener of the model gateway."""

    proxy: EgressProxy
    decisions: "Decisions"

    def cut(self) -> None:
        """Break every connection off and let no new one through."""
        self.proxy.stop()

    def renew(self, rules: NetworkRules) -> None:
        self.proxy.resume(rules)

    async def close(self) -> None:
        await self.proxy.close()
        await self.decisions.close()


class EgressServing:
    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def start(self, grant: Grant, sock: socket.socket) -> ServedProxy:
        """Serve the proxy of an attempt on its listening socket, which belongs to the result from now on."""
        decisions = Decisions(self._db, self._clock, grant.run_id, grant.attempt)
        proxy = EgressProxy(grant.network, decisions.take)
        await proxy.serve(sock)
        return ServedProxy(proxy, decisions)


@dataclass(slots=True)
class Decisions:
    """Events of one proxy, numbered under a name of its own: another process's proxy has another one."""

    db: Database
    clock: Clock
    run_id: str
    attempt: int
    _source: str = field(default_factory=lambda: f"egress.{secrets.token_hex(4)}")
    _count: int = 0
    _waiting: list[NewEvent] = field(default_factory=list[NewEvent])
    _task: "asyncio.Task[None] | None" = None

    async def take(self, payload: dict[str, Any]) -> None:
        self._count += 1
        if self._count > MOST_EVENTS or len(self._waiting) >= MOST_WAITING:
            return
        if self._count == MOST_EVENTS:
            payload = {**payload, "last": True}
        self._waiting.append(NewEvent(EventType.EGRESS, payload, self._source, self._count, self.clock.now()))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._flush(), name=f"egress decisions {self.run_id}")

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=5)

    async def _flush(self) -> None:
        while self._waiting:
            await asyncio.sleep(FLUSH_S)
            batch, self._waiting = self._waiting, []
            with contextlib.suppress(Unavailable):
                await self._write(batch)
                continue
            self._waiting = [*batch, *self._waiting][:MOST_WAITING]
            await asyncio.sleep(1.0)

    async def _write(self, batch: list[NewEvent]) -> None:
        async with self.db.transaction() as tx:
            run = await runs.load(tx, self.run_id)
            if run.outcome is None:  # an ended log gets no more events
                await events.append(tx, self.run_id, self.attempt, None, batch)

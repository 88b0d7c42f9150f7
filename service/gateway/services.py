"""Calls to gateway services: the granted ones, within their patterns and budgets, with a key that stays here (C5)."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

import structlog

from service.domain.credentials import Use
from service.domain.errors import WorksteadError
from service.domain.events import EventType, NewEvent
from service.gateway import service_calls
from service.gateway.auth import Refused
from service.gateway.caller import Caller
from service.gateway.exchange import Exchange
from service.gateway.limits import GatewayLimits
from service.gateway.ports import CredentialUnavailable
from service.gateway.upstream import Upstream, UpstreamAnswer, UpstreamFailed
from service.lifecycle.clock import Clock
from service.store import events, services
from service.store.database import Database, Tx, retrying
from service.store.rows_models import ServiceRow

WRITE_S = 600.0
MAX_KNOWN = 50_000
"""Runs and services whose calls are counted in memory; beyond that the oldest are counted anew from their events."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Secrets(Protocol):
    async def secret(self, project_id: str, credential_id: str, use: Any) -> str:
        """Raises CredentialUnavailable, Unavailable."""
        ...


@dataclass(slots=True)
class _Count:
    calls: int
    usd: Decimal


@dataclass(slots=True)
class _Call:
    """What becomes of one call."""

    row: ServiceRow
    method: str
    path: str
    began: float = field(default_factory=time.monotonic)
    status: int | None = None
    error: str | None = None
    size: int = 0

    def payload(self) -> dict[str, Any]:
        price = self.row.spec.price_per_call_usd
        return {
            "service": self.row.name,
            "method": self.method,
            "path": self.path[:500],
            "status": self.status,
            "error": self.error,
            "bytes": self.size,
            "seconds": round(time.monotonic() - self.began, 3),
            "cost_usd": price,
            "price_date": None if self.row.spec.price_as_of is None else self.row.spec.price_as_of.isoformat(),
        }


class GatewayServices:
    """What answers below ``/services/``, for every run of this gateway."""

    def __init__(self, db: Database, upstream: Upstream, vault: Secrets, limits: GatewayLimits) -> None:
        self._db, self._upstream, self._vault, self._limits = db, upstream, vault, limits
        self._counts: dict[tuple[str, str], _Count] = {}
        self._clock = Clock()
        self._source, self._written = f"service:{secrets.token_hex(6)}", 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Raises Refused, ClientGone, Unavailable."""
        name, path = service_calls.split(exchange.escaped_path())
        row = await self._find(caller, name)
        secret = await self._secret(row)
        url = service_calls.target(row.spec, exchange.method, path, exchange.raw_query, secret)
        body = await exchange.body(self._limits)
        await self._reserve(caller, row)
        call = _Call(row, exchange.method, path)
        caller.activity.moved()
        try:
            await self._ask(exchange, caller, call, url, body, secret)
        except Refused as refused:
            call.status, call.error = refused.status, refused.type
            raise
        finally:
            caller.activity.moved()
            self._say(caller, call)

    async def flush(self) -> None:
        """Wait for the events that are not written yet."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)

    async def _find(self, caller: Caller, name: str) -> ServiceRow:
        granted = next((one for one in caller.services if one.name == name), None)
        if granted is not None:
            async with self._db.reading() as tx:
                row = await services.get(tx, caller.project_id, granted.id)
            if row is not None:
                return row
        raise Refused(404, "unknown_service", f"this run has no service {name[:64]}")

    async def _secret(self, row: ServiceRow) -> str | None:
        if row.credential_id is None:
            return None
        try:
            return await self._vault.secret(row.project_id, row.credential_id, Use.SERVICE)
        except CredentialUnavailable as error:
            raise Refused(502, error.type, str(error)) from None

    async def _reserve(self, caller: Caller, row: ServiceRow) -> None:
        """Count the call before it leaves. Raises Refused (429: the run goes on without it)."""
        spec, price = row.spec, Decimal(row.spec.price_per_call_usd or 0)
        if caller.run_id is None:
            return
        key = (caller.run_id, row.id)
        if key not in self._counts:
            async with self._db.reading() as tx:
                spent = await services.spent(tx, caller.run_id, row.name)
            while len(self._counts) >= MAX_KNOWN:
                self._counts.pop(next(iter(self._counts)))
            self._counts.setdefault(key, _Count(*spent))
        count = self._counts[key]
        if spec.max_calls_per_run is not None and count.calls + 1 > spec.max_calls_per_run:
            raise Refused(429, "service_budget_exhausted", f"all {spec.max_calls_per_run} calls of {row.name} are made")
        if spec.max_usd_per_run is not None and count.usd + price > Decimal(spec.max_usd_per_run):
            raise Refused(
                429, "service_budget_exhausted", f"the {spec.max_usd_per_run} dollars of {row.name} are spent"
            )
        count.calls += 1
        count.usd += price

    async def _ask(
        self, exchange: Exchange, caller: Caller, call: _Call, url: str, body: bytes, secret: str | None
    ) -> None:
        spec = call.row.spec
        headers = service_calls.headers_up(spec, exchange.headers, secret)
        work = asyncio.ensure_future(exchange.gone())
        try:
            async with (
                asyncio.timeout(spec.timeout_s) as idle,
                self._upstream.ask(call.method, url, headers, body, private=call.row.private) as answer,
            ):
                if 300 <= answer.status < 400 and answer.status != 304:
                    raise Refused(502, "upstream_redirect", f"the service answers {answer.status}")
                await self._relay(exchange, caller, call, answer, secret, idle, work)
        except TimeoutError:
            self._broken(exchange, call, 504, "upstream_stalled")
        except UpstreamFailed as failed:
            self._broken(exchange, call, 502, failed.reason)
        finally:
            work.cancel()

    async def _relay(
        self,
        exchange: Exchange,
        caller: Caller,
        call: _Call,
        answer: UpstreamAnswer,
        secret: str | None,
        idle: asyncio.Timeout,
        gone: "asyncio.Future[None]",
    ) -> None:
        """Pass the answer on as it comes; one that is too long, or that nobody waits for any more, is cut."""
        spec, scrub, loop = call.row.spec, service_calls.Scrubber(secret), asyncio.get_running_loop()
        call.status = answer.status
        await exchange.start(answer.status, service_calls.headers_down(answer.headers, secret))
        async for piece in answer.pieces:
            idle.reschedule(loop.time() + spec.timeout_s)
            caller.activity.moved()
            call.size += len(piece)
            if call.size > spec.max_answer_bytes or gone.done():
                call.error = "client_gone" if gone.done() else "answer_too_large"
                return
            if passed := scrub.feed(piece):
                await exchange.send(passed)
        if rest := scrub.end():
            await exchange.send(rest)
        await exchange.end()

    @staticmethod
    def _broken(exchange: Exchange, call: _Call, status: int, reason: str) -> None:
        """Raises Refused unless an answer is under way, which is then broken off."""
        call.error = reason
        if not exchange.started:
            raise Refused(status, reason, f"service {call.row.name}: {reason}")

    def _say(self, caller: Caller, call: _Call) -> None:
        if caller.run_id is None or caller.attempt is None:
            return
        self._written += 1
        event = NewEvent(EventType.SERVICE_CALL, call.payload(), self._source, self._written, self._clock.now())
        run_id, attempt = caller.run_id, caller.attempt

        async def write(tx: Tx) -> None:
            await events.append(tx, run_id, attempt, None, [event])

        task = asyncio.create_task(self._until_written(write, run_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_written(self, write: Callable[[Tx], Awaitable[None]], run_id: str) -> None:
        try:
            await retrying(self._db, write, WRITE_S)
        except WorksteadError as error:
            log.warning("service_call_unwritten", run=run_id, error=error.type)

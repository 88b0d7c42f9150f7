"""Calls to gateway services: the granted ones, within their patterns and budgets, with a key that stays here (C5)."""

import asyncio
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from service.domain.credentials import Use
from service.domain.errors import Gone, NotFound, Unavailable
from service.domain.ids import new_id
from service.gateway import service_calls
from service.gateway.auth import Refused
from service.gateway.budgets import BudgetExhausted
from service.gateway.caller import Caller
from service.gateway.exchange import Exchange
from service.gateway.ledger import Ledger
from service.gateway.limits import GatewayLimits
from service.gateway.ports import CredentialUnavailable
from service.gateway.service_prices import CallPrice, price_of
from service.gateway.upstream import Upstream, UpstreamAnswer, UpstreamFailed
from service.store import service_calls as ledger_of_calls
from service.store import services
from service.store.database import Database
from service.store.rows_models import ServiceRow
from service.store.rows_requests import CallEnd, NewCall

MAX_KNOWN = 50_000
"""Runs and services whose calls are counted in memory; beyond that the oldest are counted anew from the ledger."""


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

    def end(self) -> CallEnd:
        return CallEnd(self.status, self.error, self.size, round(time.monotonic() - self.began, 3))


class GatewayServices:
    """What answers below ``/services/``, for every run of this gateway."""

    def __init__(self, db: Database, ledger: Ledger, upstream: Upstream, vault: Secrets, limits: GatewayLimits) -> None:
        self._db, self._ledger, self._upstream, self._vault, self._limits = db, ledger, upstream, vault, limits
        self._counts: dict[tuple[str, str], _Count] = {}

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Raises Refused, ClientGone, Unavailable."""
        name, path = service_calls.split(exchange.escaped_path())
        row = await self._find(caller, name)
        secret = await self._secret(row)
        url = service_calls.target(row.spec, exchange.method, path, exchange.raw_query, secret)
        body = await exchange.body(self._limits)
        service_calls.refuse_denied(caller.deny_hosts, exchange.raw_query, body)
        price = price_of(row.spec, body)
        new = self._new_call(caller, row, exchange.method, path, price)
        await self._reserve(caller, row, new)
        call = _Call(row, exchange.method, path)
        caller.activity.moved()
        try:
            await self._ask(exchange, caller, call, url, body, secret)
        except Refused as refused:
            call.status, call.error = refused.status, refused.type
            raise
        finally:
            caller.activity.moved()
            if new is not None:
                self._ledger.settle_call(new, call.end())

    def _new_call(self, caller: Caller, row: ServiceRow, method: str, path: str, price: CallPrice) -> NewCall | None:
        """Null for callers that are no run: what they spend is their own business."""
        if caller.run_id is None or caller.attempt is None:
            return None
        return NewCall(
            new_id("svq"), caller.project_id, caller.run_id, caller.attempt, self._ledger.gateway_id, row.name, method,
            path, price.units, price.usd, row.spec.price_as_of,
        )  # fmt: skip

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

    async def _reserve(self, caller: Caller, row: ServiceRow, new: NewCall | None) -> None:
        """Count the call and write it down before it leaves.

        Raises Refused: 429 for the service's own limits (the run goes on without it), 400 for the run's budget (it
        ends), 503 and 401 where it cannot be written down.
        """
        if new is None:
            return
        usd = new.cost_usd or Decimal(0)
        count = await self._count(new.run_id, row)
        _check_limits(row, count, usd)
        count.calls += 1
        count.usd += usd
        try:
            await self._begin(caller, new, usd)
        except BaseException:
            count.calls -= 1
            count.usd -= usd
            raise

    async def _count(self, run_id: str, row: ServiceRow) -> _Count:
        key = (run_id, row.id)
        if key not in self._counts:
            async with self._db.reading() as tx:
                spent = await ledger_of_calls.spent(tx, run_id, row.name)
            while len(self._counts) >= MAX_KNOWN:
                self._counts.pop(next(iter(self._counts)))
            self._counts.setdefault(key, _Count(*spent))
        return self._counts[key]

    async def _begin(self, caller: Caller, new: NewCall, usd: Decimal) -> None:
        """Take the price out of the run's budget, and write the call down. Raises Refused."""
        try:
            await caller.budget.take(usd)
        except BudgetExhausted as error:
            caller.activity.exhaust()
            raise Refused(400, "budget_exhausted", f"the run ends here: {error}") from None
        try:
            await self._ledger.begin_call(new)
        except (Unavailable, Gone, NotFound) as error:
            caller.budget.give_back(usd)
            if isinstance(error, Unavailable):
                raise Refused(503, "ledger_unavailable", "the call cannot be written down at present") from None
            raise Refused(401, "run_over", "the run has ended") from None
        except BaseException:
            self._ledger.settle_call(new, CallEnd(None, error="client_gone"))  # it may be written already
            raise

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


def _check_limits(row: ServiceRow, count: _Count, usd: Decimal) -> None:
    """Raises Refused (429)."""
    spec = row.spec
    if spec.max_calls_per_run is not None and count.calls + 1 > spec.max_calls_per_run:
        raise Refused(429, "service_budget_exhausted", f"all {spec.max_calls_per_run} calls of {row.name} are made")
    if spec.max_usd_per_run is not None and count.usd + usd > Decimal(spec.max_usd_per_run):
        raise Refused(429, "service_budget_exhausted", f"the {spec.max_usd_per_run} dollars of {row.name} are spent")

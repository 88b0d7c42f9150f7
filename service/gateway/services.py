"""Calls to gateway services: the granted ones, within their patterns and budgets, with a key that stays here (C5)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from service.domain.credentials import Use
from service.domain.errors import Gone, NotFound, Unavailable
from service.domain.ids import new_id
from service.gateway import service_calls
from service.gateway.auth import Refused
from service.gateway.body_keeper import BodyKeeper
from service.gateway.budgets import BudgetExhausted
from service.gateway.caller import Caller
from service.gateway.cassettes.replay import NoTapes, Tapes, recording_of
from service.gateway.cassettes.service_tape import CallEntry, ServiceTape
from service.gateway.cassettes.tape import CassetteMismatch
from service.gateway.exchange import Exchange
from service.gateway.ledger import Ledger
from service.gateway.limits import GatewayLimits
from service.gateway.ports import CredentialUnavailable
from service.gateway.recorded_service import RecordedService
from service.gateway.service_passing import Call, call_of, perform
from service.gateway.service_prices import CallPrice, price_of
from service.gateway.upstream import Upstream
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


class GatewayServices:
    """What answers below ``/services/``, for every run of this gateway."""

    def __init__(
        self, db: Database, ledger: Ledger, upstream: Upstream, vault: Secrets, limits: GatewayLimits,
        bodies: BodyKeeper | None = None, tapes: Tapes | None = None,
    ) -> None:  # fmt: skip
        """``bodies`` null: none are kept."""
        self._db, self._ledger, self._upstream, self._vault, self._limits = db, ledger, upstream, vault, limits
        self._bodies, self._tapes = bodies, tapes or NoTapes()
        self._counts: dict[tuple[str, str], _Count] = {}

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Raises Refused, ClientGone, Unavailable."""
        name, path = service_calls.split(exchange.escaped_path())
        row = await self._find(caller, name)
        if caller.replay_of is not None:
            await self._replayed(exchange, caller, row, path)
            return
        secret = await self._secret(row)
        url = service_calls.target(row.spec, exchange.method, path, exchange.raw_query, secret)
        body = await exchange.body(self._limits)
        service_calls.refuse_denied(caller.deny_hosts, exchange.raw_query, body)
        price = price_of(row.spec, body)
        call = call_of(row, exchange, caller, path, body, self._keep_bytes, secret)
        new = self._new_call(call, price)
        await self._reserve(caller, row, new)
        async with self._settled(call, new):
            await perform(call, self._upstream, url, body)

    @property
    def _keep_bytes(self) -> int:
        return 0 if self._bodies is None else self._bodies.limits.body_bytes

    @asynccontextmanager
    async def _settled(self, call: Call, new: NewCall) -> AsyncGenerator[None]:
        """Have it written how the call ends."""
        call.caller.activity.moved()
        try:
            yield
        except Refused as refused:
            call.refuse(refused)
            raise
        finally:
            call.caller.activity.moved()
            self._ledger.settle_call(new, call.end(), call.keeping(self._bodies))

    async def _replayed(self, exchange: Exchange, caller: Caller, row: ServiceRow, path: str) -> None:
        """Answer from the recording: nobody is asked, no key is looked up, nothing is paid."""
        body = await exchange.body(self._limits)
        call, tape = call_of(row, exchange, caller, path, body, self._keep_bytes), None
        try:
            tape = (await recording_of(caller, self._tapes)).services
            entry = await asyncio.to_thread(tape.take, call.asked)
        except CassetteMismatch as mismatch:
            await self._mismatched(call, path, body, tape, mismatch)
            return
        new = self._new_call(call, CallPrice(entry.row.units, Decimal(0)), entry)
        try:
            # The budget counts what the recorded call cost, so that it ends where it ended.
            await self._begin(caller, new, entry.row.cost_usd or Decimal(0))
        except BaseException:
            tape.give_back(entry)
            raise
        async with self._settled(call, new):
            recorded = RecordedService(tape.blobs, entry.row, call, self._limits.replay_time_scale)
            try:
                await perform(call, recorded, "", b"")
            except CassetteMismatch as mismatch:
                raise _said(call, mismatch) from None

    async def _mismatched(
        self, call: Call, path: str, body: bytes, tape: ServiceTape | None, mismatch: CassetteMismatch
    ) -> None:
        """Refuse as a live call would have been before it left: those are not recorded. Else say where it differs.

        Raises Refused, always.
        """
        exchange, caller, row = call.exchange, call.caller, call.row
        service_calls.target(row.spec, exchange.method, path, exchange.raw_query, None)
        service_calls.refuse_denied(caller.deny_hosts, exchange.raw_query, body)
        usd = price_of(row.spec, body).usd or Decimal(0)
        if tape is not None:
            _check_limits(row, _Count(*tape.spent(row.name)), usd)
        new = self._new_call(call, CallPrice(usd=Decimal(0)))
        await self._begin(caller, new, usd)
        caller.budget.give_back(usd)
        async with self._settled(call, new):
            raise _said(call, mismatch)

    def _new_call(self, call: Call, price: CallPrice, entry: CallEntry | None = None) -> NewCall:
        """``entry``: what answers in the service's place. Raises Refused: nobody but a run has services."""
        caller, asked = call.caller, call.asked
        if caller.run_id is None or caller.attempt is None:
            raise Refused(404, "unknown_service", "services are for runs")
        date = None if caller.replay_of is not None else call.row.spec.price_as_of
        return NewCall(
            new_id("svq"), caller.project_id, caller.run_id, caller.attempt, self._ledger.gateway_id, asked.service,
            asked.method, asked.path, price.units, price.usd, date, entry and entry.row.n,
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

    async def _reserve(self, caller: Caller, row: ServiceRow, new: NewCall) -> None:
        """Count the call and write it down before it leaves.

        Raises Refused: 429 for the service's own limits (the run goes on without it), 400 for the run's budget (it
        ends), 503 and 401 where it cannot be written down.
        """
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


def _said(call: Call, mismatch: CassetteMismatch) -> Refused:
    call.note = mismatch.note()
    return Refused(400, mismatch.type, str(mismatch))


def _check_limits(row: ServiceRow, count: _Count, usd: Decimal) -> None:
    """Raises Refused (429)."""
    spec = row.spec
    if spec.max_calls_per_run is not None and count.calls + 1 > spec.max_calls_per_run:
        raise Refused(429, "service_budget_exhausted", f"all {spec.max_calls_per_run} calls of {row.name} are made")
    if spec.max_usd_per_run is not None and count.usd + usd > Decimal(spec.max_usd_per_run):
        raise Refused(429, "service_budget_exhausted", f"the {spec.max_usd_per_run} dollars of {row.name} are spent")

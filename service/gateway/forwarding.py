"""The path of a model request: budget, ledger, tries at the provider, the answer passed on as it comes, settlement."""

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from service.domain.errors import Gone, NotFound, Unavailable
from service.domain.ids import new_id
from service.gateway.asking import Asking, find_route, read_asking, reservation
from service.gateway.auth import Refused, presented
from service.gateway.body_keeper import BodyKeeper, Kept
from service.gateway.budgets import BudgetExhausted, Reservation
from service.gateway.caller import Caller
from service.gateway.cassettes.replay import NoTapes, RecordedRefusal, ReplayUpstream, Tapes, recording_of
from service.gateway.cassettes.tape import CassetteMismatch
from service.gateway.dialects import registry
from service.gateway.exchange import Exchange
from service.gateway.ledger import Keeping, Ledger
from service.gateway.limits import GatewayLimits
from service.gateway.ports import (
    Credentials,
    CredentialUnavailable,
    Gate,
    GateClosed,
    GateKey,
    OpenSlot,
    Pricer,
    Purpose,
)
from service.gateway.record import Record
from service.gateway.redaction import redactor_of
from service.gateway.refusing import refuse
from service.gateway.retries import pause_s
from service.gateway.trying import Trouble, Try
from service.gateway.upstream import Upstream
from service.lifecycle.clock import Clock
from service.store.rows_requests import NewRequest, Settlement

NOTICEABLE_S = 0.05
"""Shorter waits for a place are not the provider's doing."""


@dataclass(frozen=True, slots=True)
class Parts:
    ledger: Ledger
    upstream: Upstream
    gate: Gate
    credentials: Credentials
    price: Pricer
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    bodies: BodyKeeper | None = None
    """Null: none are kept."""
    tapes: Tapes = field(default_factory=NoTapes)
    clock: Clock = field(default_factory=Clock)


class Forwarding:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer a request of somebody who may ask. Raises ClientGone; Refused only where no path is known."""
        path = exchange.path()
        rules, route = registry.rules_of(registry.likely_dialect(path)), None
        try:
            rules, route = find_route(exchange.method, path, exchange.query())
            if route.kind == "models":
                names = [one.spec.upstream_id for one in caller.models if one.spec.dialect is route.dialect]
                headers = {"content-type": "application/json"}
                await exchange.answer(200, headers, registry.model_list(route.dialect, names))
                return
            data = await exchange.body(self._parts.limits)
            asking = read_asking(rules, route, data, caller)
            await _while_there(exchange, caller, self._admitted(exchange, caller, asking))
        except Refused as refused:
            await refuse(exchange, rules, route, refused)

    async def _admitted(self, exchange: Exchange, caller: Caller, asking: Asking) -> None:
        tokens, usd = reservation(asking, caller)
        try:
            reserved = await caller.budget.reserve(tokens, usd)
        except BudgetExhausted as error:
            caller.activity.exhaust()
            raise Refused(400, "budget_exhausted", f"the run ends here: {error}") from None
        new = self._new_request(exchange, caller, asking, reserved)
        await self._begin(new, caller, reserved)
        record = Record(asking, self._parts.price)
        activity = caller.activity
        activity.requests += 1
        activity.open_requests += 1
        activity.moved()
        try:
            await self._tries(exchange, caller, record)
        except asyncio.CancelledError:
            if not record.whole():
                over = caller.seconds_left <= 0
                waiting = not over and record.kept_waiting()
                record.fail("run_over" if over else "client_gone", provider=waiting)
                # A program that then gives up has not failed: its provider has.
                activity.left_waiting = waiting or activity.left_waiting
            raise
        except Refused as refused:
            record.status = refused.status
            raise
        finally:
            activity.open_requests -= 1
            activity.moved()
            end = record.settlement()
            caller.budget.settle(reserved, None if end.usage is None else end.usage.total, end.cost.usd)
            self._parts.ledger.settle(new, end, self._keeping(exchange, caller, record, new))

    def _keeping(self, exchange: Exchange, caller: Caller, record: Record, new: NewRequest) -> Keeping | None:
        """Return what keeps the bodies, without the run's token and the provider's key."""
        keeper, passing = self._parts.bodies, record.passing
        if keeper is None or not caller.keep_bodies:
            return None
        asking = record.asking
        token = presented(exchange.headers, ())
        redactor = redactor_of(token, *record.secrets)
        answer, size = (passing.recording.data(), passing.recording.size) if passing is not None else (b"", 0)
        thread = f"{asking.model.id} {asking.route.kind}"

        async def keep() -> Kept:
            request, response = redactor.redact(asking.client_body), redactor.redact(answer)
            return await keeper.keep(caller.run_id or new.id, thread, request, response, size)

        return keep

    async def _begin(self, new: NewRequest, caller: Caller, reserved: Reservation) -> None:
        """Write the request down before it leaves. Raises Refused (503: worth another try; 401)."""
        try:
            await self._parts.ledger.begin(new)
        except Unavailable:
            caller.budget.forget(reserved)
            raise Refused(503, "ledger_unavailable", "the request cannot be written down at present") from None
        except (Gone, NotFound):
            caller.budget.forget(reserved)
            raise Refused(401, "run_over", "the run has ended") from None
        except BaseException:
            caller.budget.forget(reserved)
            self._parts.ledger.settle(new, Settlement(None, error="client_gone"))  # it may be written already
            raise

    async def _tries(self, exchange: Exchange, caller: Caller, record: Record) -> None:
        """Try until there is an answer, or patience is over. Raises Refused."""
        while True:
            record.tries += 1
            trouble = await self._one_try(exchange, caller, record)
            if trouble is None:
                caller.activity.provider(failed=record.provider_error)
                return
            pause = pause_s(record.tries, trouble.retry_after_s, self._parts.limits, secrets.randbelow(1000) / 1000)
            if trouble.final or record.wait_s + pause > caller.patience_s or pause > caller.seconds_left:
                record.fail(trouble.cause, provider=trouble.provider)
                caller.activity.provider(failed=trouble.provider)
                raise Refused(trouble.status, trouble.type, trouble.detail)
            record.troubled = record.troubled or trouble.provider
            await self._wait(caller, record, pause)

    async def _one_try(self, exchange: Exchange, caller: Caller, record: Record) -> Trouble | None:
        if caller.replay_of is not None:
            return await self._replayed(exchange, caller, record)
        model, parts = record.asking.model, self._parts
        key = GateKey(caller.project_id, model.spec.provider, model.id, model.credential_id, model.spec.max_concurrency)
        began = time.monotonic()
        left = max(NOTICEABLE_S, min(caller.patience_s - record.wait_s, caller.seconds_left))
        waiting = True
        try:
            secret = await self._secret(caller, record)
            record.secrets = () if secret is None else (secret,)
            keep = 0 if parts.bodies is None else parts.bodies.limits.body_bytes
            async with parts.gate.slot(key, left) as slot:
                waiting = False
                self._waited_since(caller, record, began)
                once = Try(parts.upstream, parts.limits, parts.clock, exchange, caller, record, slot, keep)
                return await once.run(secret)
        except asyncio.CancelledError:
            if waiting:
                self._waited_since(caller, record, began)
            raise
        except GateClosed as closed:
            self._waited(caller, record, time.monotonic() - began)
            return Trouble(503, "provider_unavailable", "provider_unavailable", closed.reason, final=True)
        except CredentialUnavailable as error:
            return Trouble(400, "provider_rejected_credential", error.type, str(error), final=True)
        except Unavailable:
            return Trouble(503, "ledger_unavailable", "database_unavailable", "try again", final=True, provider=False)

    async def _replayed(self, exchange: Exchange, caller: Caller, record: Record) -> Trouble | None:
        """Answer from the recording; nobody is asked, no key is looked up."""
        parts, asking = self._parts, record.asking
        body = redactor_of(presented(exchange.headers, ())).redact(asking.client_body)
        model = asking.facts.model or asking.route.model or ""
        keep = 0 if parts.bodies is None else parts.bodies.limits.body_bytes
        try:
            tape = (await recording_of(caller, parts.tapes)).of(caller.purpose)
            recorded = ReplayUpstream(tape, asking.route, model, body, parts.limits.replay_time_scale)
            slot = OpenSlot()
            return await Try(recorded, parts.limits, parts.clock, exchange, caller, record, slot, keep).run(None)
        except CassetteMismatch as mismatch:
            # The log is for whoever may see the run; what a simulated client knows is not.
            hidden = caller.purpose is not Purpose.AGENT
            record.note, record.cut = mismatch.note(hidden=hidden), False
            return Trouble(400, mismatch.type, mismatch.type, str(mismatch), final=True, provider=False)
        except RecordedRefusal as refused:
            record.cut = refused.cut
            return Trouble(
                refused.status, refused.type, refused.cause, str(refused), final=True, provider=refused.provider
            )
        except Unavailable:
            return Trouble(503, "ledger_unavailable", "database_unavailable", "try again", final=True, provider=False)

    async def _secret(self, caller: Caller, record: Record) -> str | None:
        model, credentials = record.asking.model, self._parts.credentials
        if model.credential_id is None:
            return await credentials.deployment(caller.project_id, model.spec, caller.purpose)
        return await credentials.secret(caller.project_id, model.credential_id, caller.purpose)

    async def _wait(self, caller: Caller, record: Record, seconds: float) -> None:
        began = time.monotonic()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waited(caller, record, time.monotonic() - began)

    @classmethod
    def _waited_since(cls, caller: Caller, record: Record, began: float) -> None:
        waited = time.monotonic() - began
        cls._waited(caller, record, waited if waited >= NOTICEABLE_S else 0.0)

    @staticmethod
    def _waited(caller: Caller, record: Record, seconds: float) -> None:
        record.wait_s += seconds
        caller.activity.provider_wait_s += seconds

    def _new_request(self, exchange: Exchange, caller: Caller, asking: Asking, reserved: Reservation) -> NewRequest:
        spec = asking.model.spec
        return NewRequest(
            new_id("mrq"), caller.project_id, self._parts.ledger.gateway_id, caller.run_id, caller.attempt,
            caller.purpose, asking.model.id, spec.provider, spec.dialect, f"{exchange.method} {exchange.path()}",
            asking.facts.model or asking.route.model, asking.facts.streaming, reserved.tokens, reserved.usd or None,
            caller.subject,
        )  # fmt: skip


async def _while_there(exchange: Exchange, caller: Caller, work_of: Coroutine[Any, Any, None]) -> None:
    """Do the work as long as the client waits for it and the caller may ask. Raises what it raises, Refused (401)."""
    work = asyncio.create_task(work_of)
    gone = asyncio.create_task(exchange.gone())
    caller.under_way.add(work)
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if work.cancelled():
            raise Refused(401, "run_over", "the run has ended")
        if work.done():
            work.result()
    finally:
        caller.under_way.discard(work)
        for task in (work, gone):
            task.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)

"""One try at a provider: what it answers is passed on as it comes, or becomes a trouble that may be tried again."""

import asyncio
import time
from dataclasses import dataclass

from service.gateway.caller import Caller
from service.gateway.dialects.contract import Meter
from service.gateway.exchange import Exchange
from service.gateway.headers import client_headers, upstream_headers
from service.gateway.keepalive import Pulse, may_be_commented
from service.gateway.limits import GatewayLimits
from service.gateway.passing import EncodingUnknown, Passing
from service.gateway.ports import Slot, TryOutcome
from service.gateway.record import Record
from service.gateway.recording import Recording
from service.gateway.redaction import Redactor, redactor_of
from service.gateway.retries import RETRYABLE, outcome_of, retry_after_s
from service.gateway.upstream import Asked, UpstreamAnswer, UpstreamFailed
from service.lifecycle.clock import Clock

READ_OF_ERRORS = 64 << 10
_LOOK_S = 0.05
"""Pieces within it count as one for the time limits."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Nothing was passed on to the client yet."""

    status: int
    """For the client, once there are no more tries."""
    type: str
    cause: str
    """For the ledger."""
    detail: str
    retry_after_s: float | None = None
    final: bool = False
    provider: bool = True
    """The provider's doing."""


@dataclass(slots=True)
class Try:
    upstream: Asked
    limits: GatewayLimits
    clock: Clock
    exchange: Exchange
    caller: Caller
    record: Record
    slot: Slot
    keep_bytes: int = 0
    """Of the answer."""

    async def run(self, secret: str | None) -> Trouble | None:
        """Return None once an answer was passed on, as a whole or as far as it came."""
        record, asking = self.record, self.record.asking
        redactor = redactor_of(*([secret] if secret else []))
        credential = asking.rules.credential_headers(secret) if secret else dict[str, str]()
        headers = upstream_headers(
            self.exchange.headers, asking.model.spec.headers, credential, json_body=asking.route.json_body
        )
        method, private = self.exchange.method, asking.model.private
        record.cut = True
        try:
            async with (
                asyncio.timeout(self.limits.stalled_s) as idle,
                self.upstream.ask(method, asking.url, headers, asking.body, private=private) as answer,
            ):
                record.seen({name: redactor.redact_text(value) for name, value in answer.headers.items()})
                trouble = await self._judge(answer)
                if trouble is None:
                    await self._relay(answer, redactor, idle)
                record.cut = False
                return trouble
        except asyncio.CancelledError:
            self._left()
            raise
        except TimeoutError:
            return await self._broken("upstream_stalled", 504, final=True)
        except EncodingUnknown:
            return await self._broken("upstream_encoding", 502, final=True)
        except UpstreamFailed as failed:
            record.cut = failed.reason == "upstream_cut"
            return await self._broken(failed.reason, 502, final=failed.reason == "upstream_not_public")

    async def _judge(self, answer: UpstreamAnswer) -> Trouble | None:
        """Return what is wrong with an answer that is not to be passed on."""
        status, outcome = answer.status, outcome_of(answer.status)
        said = f"the provider answers {status}"
        if status in RETRYABLE:
            await answer.start_of_body(READ_OF_ERRORS)  # so that the connection can be used again
            asked = retry_after_s(answer.headers, self.clock.now())
            self.slot.report(outcome, asked)
            return Trouble(503, "provider_unavailable", f"provider_{status}", said, asked)
        if outcome is TryOutcome.REJECTED:
            self.slot.report(outcome)
            return Trouble(400, "provider_rejected_credential", f"provider_{status}", said, final=True)
        if 300 <= status < 400:
            return Trouble(502, "upstream_redirect", "upstream_redirect", said, final=True)
        return None

    async def _relay(self, answer: UpstreamAnswer, redactor: Redactor, idle: asyncio.Timeout) -> None:
        record, exchange = self.record, self.exchange
        keep = self.keep_bytes if self.caller.keep_bodies else 0
        encoding, content_type = (answer.headers.get(f"content-{name}", "") for name in ("encoding", "type"))
        passing = Passing(self._meter(answer), redactor, encoding, Recording(keep, content_type, began=record.began))
        record.passing = passing
        if answer.status < 400:
            record.meter = passing.meter
        down = list(client_headers(answer.headers, redactor).items())
        pulse = Pulse(exchange, answer.status, down, self.limits.keep_alive_s)
        beats = may_be_commented(record.asking.route.dialect, answer.status, content_type)
        beating = asyncio.create_task(pulse.run()) if beats else None
        try:
            await self._pass_all(answer, passing, pulse, idle)
        finally:
            if beating is not None:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
            if exchange.started:
                record.status = answer.status
        if not exchange.started:
            record.status = answer.status
            await exchange.start(answer.status, down)
        self.slot.report(outcome_of(answer.status))
        if answer.status >= 400:
            record.fail(f"provider_{answer.status}", provider=False)
        await exchange.end()

    async def _pass_all(self, answer: UpstreamAnswer, passing: Passing, pulse: Pulse, idle: asyncio.Timeout) -> None:
        record, loop = self.record, asyncio.get_running_loop()
        looked = 0.0
        async for piece in answer.pieces:
            if (now := loop.time()) - looked > _LOOK_S:
                looked = now
                idle.reschedule(now + self.limits.stalled_s)
                self.caller.activity.moved()
            data = passing.feed(piece)
            if record.first_token_s is None and passing.meter.first_token_seen():
                record.first_token_s = time.monotonic() - record.began
            if data:
                await pulse.pass_on(data)
        if rest := passing.end():
            await pulse.pass_on(rest)

    def _meter(self, answer: UpstreamAnswer) -> Meter:
        asking = self.record.asking
        return asking.rules.meter(
            asking.route,
            streaming=asking.facts.streaming,
            content_type=answer.headers.get("content-type", ""),
            content_encoding="",
            spec=asking.model.spec,
        )

    def _left(self) -> None:
        """SDKs hang up at the dialect's end, before HTTP's own: such an answer has arrived."""
        if self.record.whole():
            self.record.cut = False
            self.slot.report(TryOutcome.OK)

    async def _broken(self, reason: str, status: int, *, final: bool) -> Trouble | None:
        """What was passed on so far stays as it is: the client sees that it was cut. After the answer's own end there
        is nothing left to be cut."""
        if self.record.whole() and self.record.passing is not None:
            self._left()
            await self.exchange.send(self.record.passing.end())
            await self.exchange.end()
            return None
        self.slot.report(TryOutcome.FAILED)
        if not self.exchange.started:
            return Trouble(status, "provider_unavailable", reason, f"the provider: {reason}", final=final)
        self.record.fail(reason, provider=True)
        return None

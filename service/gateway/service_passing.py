"""One call to a service as it passes: asked of whoever answers in the end, relayed, and what of it is kept."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from service.gateway import service_calls
from service.gateway.auth import Refused, presented
from service.gateway.body_keeper import BodyKeeper, Kept
from service.gateway.caller import Caller
from service.gateway.cassettes.service_tape import TELLING, AskedCall
from service.gateway.exchange import Exchange
from service.gateway.ledger import Keeping
from service.gateway.recording import Recording
from service.gateway.redaction import Redactor, redactor_of
from service.gateway.upstream import Asked, UpstreamAnswer, UpstreamFailed
from service.store.rows_models import ServiceRow
from service.store.rows_requests import CallEnd

_PLAIN = frozenset({"", "identity"})


@dataclass(slots=True)
class Call:
    """What becomes of one call; made by :func:`call_of`."""

    row: ServiceRow
    exchange: Exchange
    caller: Caller
    asked: AskedCall
    recording: Recording
    """Of what the client was given."""
    redactor: Redactor
    """Of what must be in nothing that is kept: the run's token, the service's secret."""
    secret: str | None = field(default=None, repr=False)
    gone: "asyncio.Future[None] | None" = None
    """Done when the client has left; while the call is under way."""
    began: float = field(default_factory=time.monotonic)
    status: int | None = None
    error: str | None = None
    size: int = 0
    refusal: str | None = None
    """Our words in place of an answer."""
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Of the answer, as the client was given them."""
    note: dict[str, Any] | None = None

    def refuse(self, refused: Refused) -> None:
        self.status, self.error, self.refusal = refused.status, refused.type, str(refused)

    def end(self) -> CallEnd:
        seconds = round(time.monotonic() - self.began, 3)
        return CallEnd(self.status, self.error, self.size, seconds, cassette=self._cassette(), note=self.note)

    def keeping(self, keeper: BodyKeeper | None) -> Keeping | None:
        """Return what keeps the bodies; null: they are not to be kept."""
        if keeper is None or not self.recording.limit:
            return None
        # Apart from the models': downloads must not use up what a run's conversations may take.
        owner = f"services of {self.caller.run_id}"

        async def keep() -> Kept:
            answer = self.redactor.redact(self.recording.data()) if self._readable() else b""
            return await keeper.keep(owner, self.row.name, self.asked.body, answer, self.recording.size)

        return keep

    def _readable(self) -> bool:
        """Tell whether a secret would be seen in the answer. All are asked for plain bytes, hardly one sends others."""
        return dict(self.headers).get("content-encoding", "").strip().lower() in _PLAIN

    def _cassette(self) -> dict[str, Any] | None:
        if not self.recording.limit:
            return None
        pairs = [[name, self.redactor.redact_text(value)] for name, value in self.headers]
        answer = {"chunks": self.recording.chunks, "headers": pairs} if self.exchange.started else None
        return {"v": 1, "asked": self.asked.told(), "answer": answer, "refusal": self.refusal}


def call_of(
    row: ServiceRow, exchange: Exchange, caller: Caller, path: str, body: bytes, keep_bytes: int, secret: str | None = None
) -> Call:  # fmt: skip
    """Return a call that is about to be made; ``keep_bytes`` of its answer are kept. Raises Refused (401)."""
    redactor = redactor_of(presented(exchange.headers, ()), *([secret] if secret else []))
    query = redactor.redact_text(exchange.raw_query.decode("latin-1"))
    headers = {name: redactor.redact_text(value) for name, value in exchange.headers if name in TELLING}
    where = redactor.redact_text(path)
    asked = AskedCall(row.name, exchange.method, where, query, headers, redactor.redact(body))
    keep = keep_bytes if caller.keep_bodies and caller.run_id is not None else 0
    return Call(row, exchange, caller, asked, Recording(keep), redactor, secret)


async def perform(call: Call, upstream: Asked, url: str, body: bytes) -> None:
    """Ask, and pass the answer on. Raises Refused where nothing was answered, ClientGone, what ``upstream`` raises."""
    spec, exchange = call.row.spec, call.exchange
    headers = service_calls.headers_up(spec, exchange.headers, call.secret)
    call.gone = asyncio.ensure_future(exchange.gone())
    try:
        async with (
            asyncio.timeout(spec.timeout_s) as idle,
            upstream.ask(exchange.method, url, headers, body, private=call.row.private) as answer,
        ):
            if 300 <= answer.status < 400 and answer.status != 304:
                raise Refused(502, "upstream_redirect", f"the service answers {answer.status}")
            await _relay(call, answer, idle, call.gone)
    except TimeoutError:
        _broken(call, 504, "upstream_stalled")
    except UpstreamFailed as failed:
        _broken(call, 502, failed.reason)
    except asyncio.CancelledError:
        call.error = "client_gone"
        raise
    finally:
        call.gone.cancel()


async def _relay(call: Call, answer: UpstreamAnswer, idle: asyncio.Timeout, gone: "asyncio.Future[None]") -> None:
    """Pass the answer on as it comes; one that is too long, or that nobody waits for any more, is cut."""
    spec, loop = call.row.spec, asyncio.get_running_loop()
    redactor = redactor_of(*([call.secret] if call.secret else []))
    stream = redactor.stream()
    call.status, call.headers = answer.status, service_calls.headers_down(answer.headers, redactor)
    await call.exchange.start(answer.status, call.headers)
    async for piece in answer.pieces:
        idle.reschedule(loop.time() + spec.timeout_s)
        call.caller.activity.moved()
        call.size += len(piece)
        if call.size > spec.max_answer_bytes or gone.done():
            call.error = "client_gone" if gone.done() else "answer_too_large"
            return
        await _pass_on(call, stream.feed(piece))
    await _pass_on(call, stream.end())
    await call.exchange.end()


async def _pass_on(call: Call, data: bytes) -> None:
    if data:
        call.recording.take(data)
        await call.exchange.send(data)


def _broken(call: Call, status: int, reason: str) -> None:
    """Raises Refused unless an answer is under way, which is then broken off."""
    call.error = reason
    if not call.exchange.started:
        raise Refused(status, reason, f"service {call.row.name}: {reason}")

"""From a request to its answer."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from service.models.scripted import outgoing
from service.models.scripted.conversation import Reply, Request
from service.models.scripted.endpoints import Endpoint
from service.models.scripted.exchanges import Exchange
from service.models.scripted.outgoing import Outgoing
from service.models.scripted.scenario import Fault, FaultKind, Scenario
from service.models.scripted.script import reply as scripted

_ERROR_TEXT = "scripted fault"


def answer(
    endpoint: Endpoint, request: Request, scenario: Scenario, fault: Fault | None, exchange: Exchange
) -> Outgoing:
    """Return the answer, spoilt by ``fault``; what it tells of usage is noted in ``exchange``."""
    reply = scripted(scenario, request)
    exchange.turn = reply.turn
    if fault is not None and (refused := _refused(endpoint, fault, exchange)) is not None:
        return refused
    kind = fault.kind if fault is not None else None
    if kind == FaultKind.NO_USAGE or not request.wants_usage:
        reply = replace(reply, tells_usage=False)
    if kind == FaultKind.ECHO_KEY:
        reply = replace(reply, text=f"{reply.text} {exchange.credential}")
    out = _formed(endpoint, request, reply, kind, exchange)
    if kind == FaultKind.ECHO_KEY:
        out = replace(out, headers={**out.headers, "x-echoed": exchange.credential})
    told = reply.tells_usage and kind not in {FaultKind.REDIRECT, FaultKind.CONTENT_TYPE, FaultKind.HUGE_BODY,
                                              FaultKind.MALFORMED, FaultKind.STREAM_ERROR, FaultKind.RESET}  # fmt: skip
    exchange.usage = endpoint.told(reply.usage) if told else None
    return outgoing.spoilt(out, fault) if fault is not None else out


def _refused(endpoint: Endpoint, fault: Fault, exchange: Exchange) -> Outgoing | None:
    if fault.kind == FaultKind.STATUS:
        headers = {"retry-after": fault.retry_after} if fault.retry_after is not None else {}
        refused = outgoing.whole(endpoint.wire.error(fault.status, _ERROR_TEXT), fault.status, headers)
        return replace(refused, pause_s=fault.wait_s)
    if fault.kind == FaultKind.ECHO_KEY and fault.status >= 400:
        message = f"invalid key: {exchange.credential}"
        return outgoing.whole(
            endpoint.wire.error(fault.status, message), fault.status, {"x-echoed": exchange.credential}
        )
    return None


def _formed(
    endpoint: Endpoint, request: Request, reply: Reply, kind: FaultKind | None, exchange: Exchange
) -> Outgoing:  # fmt: skip
    if not request.streaming:
        return outgoing.whole(endpoint.wire.whole(reply))
    frames = endpoint.wire.stream(reply)
    if kind == FaultKind.STREAM_ERROR:
        return outgoing.streamed(_broken(list(frames), endpoint.wire.stream_error(_ERROR_TEXT)))
    if endpoint.kind == "generate" and "alt=sse" not in exchange.query:
        listed = [json.loads(frame.removeprefix(b"data: ")) for frame in frames]
        return replace(outgoing.whole({}), pieces=_array(listed))
    return outgoing.streamed(frames)


def _broken(frames: list[bytes], error: bytes) -> Iterable[bytes]:
    return [*frames[: len(frames) // 2], error]


def _array(values: list[object]) -> Iterator[bytes]:
    """Yield a JSON array item by item, as Gemini streams without ``alt=sse``."""
    for n, value in enumerate(values):
        yield (b"[" if n == 0 else b",\n") + json.dumps(value, ensure_ascii=False).encode()
    yield b"]"

"""An answer as bytes, and what faults make of it."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from service.models.scripted.scenario import Fault, FaultKind

Ending = Literal["whole", "cut", "reset", "stall", "linger"]
_HTML = b"<!doctype html><title>Bad gateway</title><h1>502 Bad gateway</h1>\n"
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Outgoing:
    status: int
    pieces: Iterable[bytes]
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pause_s: float = 0.0
    """Before each piece."""
    ending: Ending = "whole"
    stall_s: float = 0.0


def whole(body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Outgoing:
    return Outgoing(status, [json.dumps(body, ensure_ascii=False).encode()], headers=headers or {})


def streamed(frames: Iterable[bytes]) -> Outgoing:
    return Outgoing(200, frames, "text/event-stream; charset=utf-8", {"cache-control": "no-cache"})


def spoilt(out: Outgoing, fault: Fault) -> Outgoing:
    """Return ``out`` with a fault of the wire; kinds that change what is said are left alone."""
    streaming = out.content_type.startswith("text/event-stream")
    match fault.kind:
        case FaultKind.CUT:
            return replace(out, pieces=_half(out.pieces), ending="cut")
        case FaultKind.RESET:
            return replace(out, pieces=(), ending="reset")
        case FaultKind.SLOW:
            return replace(out, pause_s=fault.seconds)
        case FaultKind.STALL | FaultKind.LINGER:
            begun = replace(out, ending="linger", stall_s=fault.seconds)
            return begun if fault.kind is FaultKind.LINGER else replace(begun, pieces=_half(out.pieces), ending="stall")
        case FaultKind.REDIRECT:
            return Outgoing(302, (), "text/plain", {"location": fault.location})
        case FaultKind.MALFORMED:
            return replace(out, pieces=[_torn(piece, streaming) for piece in out.pieces])
        case FaultKind.CONTENT_TYPE:
            return Outgoing(200, [_HTML], "text/html")
        case FaultKind.SPLIT:
            return replace(out, pieces=_split(out.pieces, min(fault.size, _BLOCK)))
        case FaultKind.HUGE_BODY:
            return replace(out, pieces=_huge(fault.size, streaming))
        case _:
            return out


def _half(pieces: Iterable[bytes]) -> list[bytes]:
    """Return the first half, cut inside a piece."""
    every = list(pieces)
    kept = every[: (len(every) + 1) // 2]
    return [*kept[:-1], kept[-1][: len(kept[-1]) // 2]] if kept else []


def _torn(piece: bytes, streaming: bool) -> bytes:
    return piece.rstrip(b"\n")[:-9] + b"\n\n" if streaming else piece[: len(piece) // 2]


def _split(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        yield from (piece[at : at + size] for at in range(0, len(piece), size))


def _huge(size: int, streaming: bool) -> Iterator[bytes]:
    head, tail = (b'data: {"padding":"', b'"}\n\n') if streaming else (b'{"padding":"', b'"}')
    yield head
    yield from itertools.repeat(b"x" * _BLOCK, max(0, size - len(head) - len(tail)) // _BLOCK + 1)
    yield tail

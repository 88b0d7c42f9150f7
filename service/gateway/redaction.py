"""Secrets out of anything that is kept or passed on: as they are, and as JSON, URLs and base64 write them.

What replaces a secret is as long as what it replaces, so that announced lengths stay true.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Characters; a shorter secret is none, and taking it out would spoil the text."""
_SHORTEST_CORE = 8
_MARK = b"[redacted]"


class Redactor:
    """Knows the forms of some secrets. ``repr`` shows none."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._forms = ordered
        self._pattern = re.compile(b"|".join(map(re.escape, ordered))) if ordered else None
        # No form has a line break in it, unless a secret has: nothing that waits begins before the last one.
        self._break = b"\n" if ordered and not any(b"\n" in form for form in ordered) else None
        self._starts = frozenset(form[:n] for form in forms for n in range(1, len(form)))
        self._longest = max(map(len, forms), default=0)

    def __repr__(self) -> str:
        return "Redactor()"

    def redact(self, data: bytes) -> bytes:
        return self._pattern.sub(_masked, data) if self._pattern is not None and self._has(data) else data

    def redact_text(self, text: str) -> str:
        return self.redact(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value with every string redacted, keys too."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self.redact_json(one) for one in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, Any]", value).items()
            return {self.redact_text(key): self.redact_json(one) for key, one in pairs}
        return value

    def stream(self) -> "RedactingStream":
        return RedactingStream(self)

    def taken(self, held: bytes) -> tuple[bytes, bytes]:
        """Return what may leave of ``held``, redacted, and what must wait: it may be the beginning of a secret."""
        if self._pattern is None:
            return held, b""
        out: list[bytes] = []
        done, waits = 0, self._waiting(held, 0)
        if not self._has(held):
            return held[:waits], held[waits:]
        while (found := self._pattern.search(held, done)) is not None and found.start() < waits:
            out += (held[done : found.start()], _masked(found))
            done = found.end()
            if done > waits:
                waits = self._waiting(held, done)
        out.append(held[done:waits])
        return b"".join(out), held[waits:]

    def _has(self, data: bytes) -> bool:
        # Twenty searches of the C library are far quicker than one pattern of twenty branches.
        return any(form in data for form in self._forms)

    def _waiting(self, held: bytes, start: int) -> int:
        """Return where the longest end of ``held`` begins that is the beginning of a form."""
        if self._break is not None:
            start = max(start, held.rfind(self._break) + 1)
        for at in range(max(start, len(held) - self._longest + 1), len(held)):
            if held[at:] in self._starts:
                return at
        return len(held)


@lru_cache(maxsize=256)
def redactor_of(*secrets: str) -> Redactor:
    """Return the redactor of these secrets; making one costs more than using it for a whole answer."""
    return Redactor(secrets)


class RedactingStream:
    """Redacts bytes that come in pieces; holds back only what may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        out, self._held = self._redactor.taken(self._held + data)
        return out

    def end(self) -> bytes:
        """Return what was held back; the stream is over."""
        rest, self._held = self._redactor.redact(self._held), b""
        return rest


def _masked(found: re.Match[bytes]) -> bytes:
    size = found.end() - found.start()
    return (_MARK + b"*" * size)[:size]


def _forms(secret: str) -> Iterable[bytes]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield raw
    for written in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield from _escaped_again(written)
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), quoted).encode()
    yield raw.hex().encode()
    yield from _base64(raw)


def _escaped_again(written: str) -> Iterable[bytes]:
    """JSON inside JSON, and writers that escape the slash."""
    for form in (written, json.dumps(written)[1:-1]):
        data = form.encode("utf-8", "surrogatepass")
        yield data
        yield data.replace(b"/", b"\\/")


def _base64(raw: bytes) -> Iterable[bytes]:
    """The part that is the same whatever stands before and after it, for the three places where it can begin."""
    for before in range(3):
        whole = bytes(before) + raw
        coded = base64.b64encode(whole)
        first, last = -(-before * 8 // 6), len(whole) * 8 // 6
        core = coded[first:last]
        if len(core) >= _SHORTEST_CORE:
            yield core
            yield core.replace(b"+", b"-").replace(b"/", b"_")

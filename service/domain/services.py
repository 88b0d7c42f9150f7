"""Gateway services: further upstreams whose key stays outside (NEEDS C5): search, media, MCP servers, mirrors."""

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, field_validator

from service.domain.models import HttpUrl
from service.domain.tasks import Money, Strict

ServiceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_TAKEN = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "cookie"})
_SEGMENT = re.compile(r"[A-Za-z0-9._~!$&'()+,;=:@%-]+")
_SLASH = re.compile("%2f", re.IGNORECASE)


class CredentialPlace(Strict):
    """How the credential goes into a request."""

    place: Literal["bearer", "header", "query", "none"] = "bearer"
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")] | None = None
    """Of the header or the query parameter."""

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str | None) -> str | None:
        if name is not None and name.lower() in _TAKEN:
            raise ValueError("this header is the connection's own")
        return name


class AllowedCall(Strict):
    methods: list[Method] = Field(default_factory=lambda: ["GET"], min_length=1, max_length=6)
    path: Annotated[str, Field(pattern=r"^/", max_length=500)] = "/**"
    """Below the base URL. ``*`` stands for one segment, ``**`` at the end for any rest, also none. A segment with ``%2f``
    admits that escaped slash, which nothing else does; each side of it is plain text, ``*`` or ``@*``: npm's scoped
    packages are ``/@*%2f*``."""

    @field_validator("path")
    @classmethod
    def _is_pattern(cls, path: str) -> str:
        parts = path.split("/")[1:]
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if (part == "**" and last) or (part == "" and last) or part == "*":
                continue
            pieces = _SLASH.split(part)
            wild = len(pieces) > 1
            if not all((wild and piece in ("*", "@*")) or _is_text(piece) for piece in pieces):
                raise ValueError("segments are plain text, * for any one, ** at the end, or such pieces around %2f")
        return path


def _is_text(piece: str) -> bool:
    return piece not in ("", ".", "..") and "%" not in piece and bool(_SEGMENT.fullmatch(piece))


class UnitPrice(Strict):
    """A price by what a call asks for, read from its JSON body before it leaves: images, characters, seconds."""

    field: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    """Of the body's object: ``n`` of images, ``input`` of speech, ``seconds`` of a video."""
    counts: Literal["number", "characters"] = "number"
    """The field's number (1 where it is missing), or the length of its text."""
    usd: Money
    per: int = Field(default=1, ge=1, le=1_000_000_000)
    """How many units ``usd`` is for."""


class ServiceSpec(Strict):
    """A service of the gateway, reachable in a sandbox as ``/services/<name>/…``."""

    name: ServiceName
    """Unique in the project."""
    base_url: HttpUrl
    credential: CredentialPlace = Field(default_factory=CredentialPlace)
    allow: list[AllowedCall] = Field(default_factory=lambda: [AllowedCall()], min_length=1, max_length=64)
    """What may be called; anything else is answered 403 and never leaves."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], max_length=16)
    """Further headers for the upstream; no credentials."""
    price_per_call_usd: Money | None = None
    """Null: not known, never free."""
    price_per_unit: UnitPrice | None = None
    """Beside the price per call, for calls with a body."""
    price_as_of: date | None = None
    max_calls_per_run: int | None = Field(default=None, ge=0, le=10_000_000)
    """Over all attempts of a run."""
    max_usd_per_run: Money | None = None
    timeout_s: float = Field(default=60, gt=0, le=600)
    """Most seconds that the upstream may be silent."""
    max_answer_bytes: int = Field(default=256 << 20, ge=1, le=8 << 30)

    @field_validator("headers")
    @classmethod
    def _are_plain(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or name.lower() in _TAKEN or not value.isprintable() or not value.isascii():
                raise ValueError("not a header that may be set")
        return headers


def path_allowed(spec: ServiceSpec, method: str, path: str) -> bool:
    """Tell whether a call may leave. ``path`` is the raw one below the service, with its leading slash.

    Refused before any pattern is looked at: empty and dotted segments, backslashes, and escapes of ``\\``, ``.`` and
    ``%``, because an upstream may unescape them and see another path than the pattern did. An escaped ``/`` passes only
    where a pattern has one in the same place, and each side of it is judged like a segment.
    """
    segments = path.split("/")[1:]
    if not segments:
        return False
    pieces = [piece for segment in segments[:-1] for piece in _SLASH.split(segment)]
    last = [] if segments[-1] == "" else _SLASH.split(segments[-1])
    return all(_is_plain(p) for p in [*pieces, *last]) and any(
        method in call.methods and _matches(call.path.split("/")[1:], segments) for call in spec.allow
    )


_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})|%(2[eEfF5]|5[cC]|00)")


def _is_plain(segment: str) -> bool:
    return segment not in ("", ".", "..") and bool(_SEGMENT.fullmatch(segment)) and not _ESCAPED.search(segment)


def _matches(pattern: list[str], segments: list[str]) -> bool:
    if pattern[-1] == "**":
        head, rest = pattern[:-1], segments[len(pattern) - 1 :]
        known = len(segments) >= len(head) and not any(_SLASH.search(segment) for segment in rest)
        return known and all(map(_matches_one, head, segments))
    return len(pattern) == len(segments) and all(map(_matches_one, pattern, segments))


def _matches_one(pattern: str, segment: str) -> bool:
    wanted, given = _SLASH.split(pattern), _SLASH.split(segment)
    return len(wanted) == len(given) and all(map(_matches_piece, wanted, given))


def _matches_piece(wanted: str, given: str) -> bool:
    scoped = wanted == "@*" and len(given) > 1 and given.startswith("@")
    return wanted == given or scoped or (wanted == "*" and given != "")

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
    """Below the base URL. ``*`` stands for one segment, ``**`` at the end for any rest, also none."""

    @field_validator("path")
    @classmethod
    def _is_pattern(cls, path: str) -> str:
        parts = path.split("/")[1:]
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if (part == "**" and last) or (part == "" and last) or part == "*":
                continue
            if part in ("", ".", "..", "**") or "%" in part or not _SEGMENT.fullmatch(part):
                raise ValueError("segments are plain text, * for any one, or ** at the end")
        return path


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

    Refused before any pattern is looked at: empty and dotted segments, backslashes, and escapes of ``/``, ``\\``, ``.``
    and ``%``, because an upstream may unescape them and see another path than the pattern did.
    """
    segments = path.split("/")[1:]
    if not segments:
        return False
    plain = all(_is_plain(s) for s in segments[:-1]) and (segments[-1] == "" or _is_plain(segments[-1]))
    return plain and any(method in call.methods and _matches(call.path.split("/")[1:], segments) for call in spec.allow)


_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})|%(2[eEfF5]|5[cC]|00)")


def _is_plain(segment: str) -> bool:
    return segment not in ("", ".", "..") and bool(_SEGMENT.fullmatch(segment)) and not _ESCAPED.search(segment)


def _matches(pattern: list[str], segments: list[str]) -> bool:
    if pattern[-1] == "**":
        head = pattern[:-1]
        return len(segments) >= len(head) and _matches_all(head, segments[: len(head)])
    return len(pattern) == len(segments) and _matches_all(pattern, segments)


def _matches_all(pattern: list[str], segments: list[str]) -> bool:
    return all(p == s or (p == "*" and s != "") for p, s in zip(pattern, segments, strict=True))

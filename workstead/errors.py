"""What a call may raise. Tree::

WorksteadError
  Problem            the server answered with a problem (RFC 9457); ``type`` is its stable slug
    Unauthenticated 401 · Forbidden 403 · NotFound 404 · Conflict 409 · Gone 410 · PreconditionFailed 412
    TooLarge 413 · Invalid 422 · RateLimited 429 · Unavailable 503 · ServerError other 5xx
  Disconnected       no usable answer after all retries
  ProtocolError      an answer that this client cannot understand (or that exceeds its bounds)
"""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import httpx

PREFIX = "urn:workstead:problem:"


class WorksteadError(Exception):
    """Root of everything that this package raises on purpose."""


class Disconnected(WorksteadError):
    """No usable answer after all retries."""


class ProtocolError(WorksteadError):
    """The other side is not a Workstead API of this version, or broke a bound."""


class Problem(WorksteadError):
    """A problem that the server stated. ``fields`` holds its extra members."""

    status_codes: ClassVar[tuple[int, ...]] = ()

    def __init__(self, status: int, type: str, detail: str, fields: Mapping[str, Any] | None = None) -> None:
        self.status = status
        self.type = type
        self.detail = detail
        self.fields: Mapping[str, Any] = fields or {}
        self.request_id = self.fields.get("request_id")
        super().__init__(f"{type} ({status}): {detail}" if detail else f"{type} ({status})")


class Unauthenticated(Problem):
    status_codes = (401,)


class Forbidden(Problem):
    status_codes = (403,)


class NotFound(Problem):
    status_codes = (404,)


class Conflict(Problem):
    status_codes = (409,)


class Gone(Problem):
    """``cursor_expired``: what was deleted since the cursor is not known any more; begin without one."""

    status_codes = (410,)


class PreconditionFailed(Problem):
    status_codes = (412,)


class TooLarge(Problem):
    status_codes = (413,)


class Invalid(Problem):
    status_codes = (422,)


class RateLimited(Problem):
    status_codes = (429,)


class Unavailable(Problem):
    status_codes = (503,)


class ServerError(Problem):
    status_codes = (500, 502, 504)


_BY_STATUS: dict[int, type[Problem]] = {
    status: kind
    for kind in (
        *(Unauthenticated, Forbidden, NotFound, Conflict, Gone, PreconditionFailed),
        *(TooLarge, Invalid, RateLimited, Unavailable, ServerError),
    )
    for status in kind.status_codes
}


def problem_from(response: httpx.Response) -> Problem:
    """Make the exception for an error response whose body has been read; never fails itself."""
    return problem_of(response.status_code, _members(response))


def problem_of(status: int, members: Mapping[str, Any]) -> Problem:
    """Make the exception from a problem's members."""
    kind = _BY_STATUS.get(status, Problem)
    body = dict(members)
    slug = str(body.pop("type", "") or f"http_{status}").removeprefix(PREFIX)
    detail = str(body.pop("detail", "") or body.get("title", ""))
    text = detail + _pointers(body.get("errors")) + _known(body.get("known"))
    return kind(status, slug, text, body)


def _members(response: httpx.Response) -> dict[str, Any]:
    try:
        body: Any = response.json()
    except (ValueError, RecursionError, httpx.ResponseNotRead):
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _pointers(errors: Any) -> str:
    if not isinstance(errors, list):
        return ""
    items = [cast("dict[str, Any]", e) for e in cast("list[Any]", errors)[:20] if isinstance(e, dict)]
    return "".join(f"\n  {e.get('pointer', '')}: {e.get('detail', '')}" for e in items)


def _known(names: Any) -> str:
    """Say what there is instead of what was asked for."""
    if not isinstance(names, list) or not names:
        return ""
    return f"; known: {', '.join(str(name) for name in cast('list[Any]', names)[:60])}"

"""RFC 9457 problems: one shape for everything that is not a success, with a stable ``type`` and the request's id."""

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.domain.errors import Expected

log = structlog.stdlib.get_logger()

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 50
_OWN_MEMBERS = frozenset({"headers", "type", "title", "status", "detail"})
# The names of RFC 9110; older Pythons have older ones.
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class ProblemError(BaseModel):
    """One thing that is wrong with the request."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    pointer: str
    """JSON pointer into the body, or ``#/query/<name>``, ``#/header/<name>``, ``#/path/<name>``."""
    type: str
    detail: str


class Problem(BaseModel):
    """Every answer that is not a success."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str
    """``urn:workstead:problem:<slug>``; stable."""
    title: str
    status: int
    detail: str | None = None
    request_id: str | None = None
    errors: list[ProblemError] = Field(default_factory=list[ProblemError])


class BodyRefused(HTTPException):
    """A request body that may not even be parsed; FastAPI passes this on where it would hide other errors."""

    def __init__(self, status: int, type: str, detail: str) -> None:
        super().__init__(status, detail)
        self.type = type


def problem(
    status: int, type: str, detail: str = "", *, headers: Mapping[str, str] | None = None, **fields: Any
) -> Response:
    """Return a problem document. ``fields`` are extension members; the request id is added by the middleware."""
    body = problem_members(status, type, detail, **fields)
    response = Response(json.dumps(body, default=str), status, headers, MEDIA_TYPE)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def problem_members(status: int, type: str, detail: str = "", **fields: Any) -> dict[str, Any]:
    """Return what a problem says, for one that is part of another resource."""
    return {
        **{k: v for k, v in fields.items() if k not in _OWN_MEMBERS},
        "type": f"urn:workstead:problem:{type}",
        "title": _TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": clean(detail) or None,
    }


def with_request_id(body: bytes, request_id: str) -> bytes:
    """Add the request's id to a rendered problem."""
    return body[:-1] + b', "request_id": ' + json.dumps(request_id).encode() + b"}"


def clean(text: str, limit: int = 1000) -> str:
    """Make text that may quote the request safe to print: control characters escaped, bounded in length."""
    escaped = _TEXT.sub(lambda m: f"\\u{ord(m.group()):04x}", text[:limit])
    return escaped + (" …[truncated]" if len(text) > limit else "")


def expected_problem(error: Expected) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="workstead"'} if error.status == 401 else {}
    if error.status == 503:
        headers["Retry-After"] = "2"
    extra = error.fields.get("headers")
    if isinstance(extra, Mapping):
        headers |= cast("Mapping[str, str]", extra)
    fields = {k: v for k, v in error.fields.items() if k not in _OWN_MEMBERS}
    return problem(error.status, error.type, error.detail, headers=headers, **fields)


def validation_problem(errors: Sequence[Any]) -> Response:
    shown = [_one(e) for e in errors[:MAX_ERRORS]]
    return problem(422, "invalid_request", "the request does not fit its schema", errors=shown, error_count=len(errors))


def _one(error: Mapping[str, Any]) -> dict[str, str]:
    parts = [str(p) for p in error.get("loc", ())]
    if parts[:1] == ["body"]:
        parts = parts[1:]
    pointer = "/".join(clean(p, 200).replace("~", "~0").replace("/", "~1") for p in parts)
    return {
        "pointer": f"#/{pointer}" if parts else "#",
        "type": str(error.get("type", "invalid")),
        "detail": clean(str(error.get("msg", "")), 500),
    }


_SLUGS = {400: "bad_request", 404: "route_not_found", 405: "method_not_allowed", 413: "body_too_large"}


async def _expected(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Expected)
    return expected_problem(error)


async def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, BodyRefused):
        return problem(error.status_code, error.type, error.detail)
    slug = _SLUGS.get(error.status_code, HTTPStatus(error.status_code).name.lower())
    return problem(error.status_code, slug, str(error.detail), headers=error.headers)


async def _validation(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return validation_problem(error.errors())


async def _fault(request: Request, error: Exception) -> Response:
    request_id: str = request.scope["state"]["request_id"]
    log.error("request_failed", path=clean(request.url.path), request_id=request_id, exc_info=error)
    response = problem(500, "internal_error", request_id=request_id)
    # Rendered outside of all middleware: what Edge adds to other answers is added here.
    response.headers["X-Request-Id"] = request_id
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def install(app: FastAPI) -> None:
    app.add_exception_handler(Expected, _expected)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(Exception, _fault)

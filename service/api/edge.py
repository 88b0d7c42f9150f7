"""The outermost layer of every request: its id, what is refused before any route is looked at, and one log line.

Pure ASGI, so that streams pass through it untouched.
"""

import asyncio
import re
import secrets
import time
from typing import Any
from urllib.parse import parse_qsl

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.archive_types import is_archive_upload, is_file_write
from service.api.charging import charged_headers
from service.api.problems import MEDIA_TYPE, BodyRefused, clean, problem, with_request_id
from service.lifecycle.bridge_frames import MAX_BODY

log = structlog.stdlib.get_logger()

MAX_HEADER_BYTES = 32 << 10
MAX_AUTHORIZATION = 512
BODY_WAIT_S = 30.0
"""Most seconds between two pieces of a request's body."""
BODY_TOTAL_S = 120.0
"""Most seconds for a whole body that is neither a blob, a file nor an archive."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
_TOKEN_NAMES = frozenset({"token", "access_token", "api_key", "apikey", "authorization", "bearer", "key", "secret"})
_TOKEN_VALUE = re.compile(r"\bws[tr]_")


class Edge:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, max_json_bytes: int, max_archive_bytes: int) -> None:
        self._app = app
        self._max_json_bytes = max_json_bytes
        self._max_archive_bytes = max_archive_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = Headers(scope=scope)
        asked = headers.get("x-request-id", "")
        request_id = asked if _REQUEST_ID.match(asked) else f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id, scope["state"])
        try:
            refusal = self._refusal(scope, headers)
            if refusal is None:
                body = _Body(receive, self._most(scope), total_s=BODY_TOTAL_S if _is_small(scope) else None)
                await self._app(scope, body, answer)
            else:
                await refusal(scope, receive, answer)
        finally:
            _log(scope, request_id, answer.status, time.perf_counter() - started)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if (refused := _bad_headers(scope, headers)) or (refused := _bad_target(scope)):
            return refused
        length, most = headers.get("content-length", "0"), self._most(scope)
        if most is not None and length.isdecimal() and int(length[:20]) > most:
            return problem(413, "body_too_large", f"a body has at most {most} bytes")
        return None

    def _most(self, scope: Scope) -> int | None:
        """Return how many bytes a body may have; of a blob, its route says."""
        if is_file_write(scope):
            return MAX_BODY
        if _is_small(scope):
            return self._max_json_bytes
        return self._max_archive_bytes if is_archive_upload(scope) else None


def _bad_headers(scope: Scope, headers: Headers) -> Response | None:
    authorization = headers.getlist("authorization")
    if len(authorization) > 1 or any(len(value) > MAX_AUTHORIZATION for value in authorization):
        return problem(401, "bad_credentials", headers={"WWW-Authenticate": 'Bearer realm="workstead"'})
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        return problem(431, "headers_too_large", f"headers have at most {MAX_HEADER_BYTES} bytes")
    return None


def _bad_target(scope: Scope) -> Response | None:
    if "\x00" in scope["path"]:
        return problem(404, "route_not_found")
    query = scope["query_string"]
    if not query:
        return None
    if len(query) > MAX_HEADER_BYTES:
        return problem(414, "query_too_long")
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    if any(name.lower() in _TOKEN_NAMES or _TOKEN_VALUE.search(value) for name, value in pairs):
        return problem(401, "token_in_query", "credentials travel in the Authorization header, never in a URL")
    if any("\x00" in name or "\x00" in value for name, value in pairs):
        return problem(422, "invalid_request", "NUL in the query")
    return None


def _is_small(scope: Scope) -> bool:
    return not (scope["path"].startswith("/v1/blobs/") or is_archive_upload(scope) or is_file_write(scope))


class _Body:
    """``receive`` with a size limit and deadlines: between two pieces, and ``total_s`` for all of them."""

    def __init__(self, receive: Receive, limit: int | None, total_s: float | None) -> None:
        self._receive = receive
        self._limit = limit
        self._seen = 0
        self._deadline = None if total_s is None else time.monotonic() + total_s
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:  # what follows is only the wait for a disconnect
            return await self._receive()
        message = await self._next()
        if message["type"] == "http.request":
            self._complete = not message.get("more_body", False)
            self._seen += len(message.get("body", b""))
            if self._limit is not None and self._seen > self._limit:
                raise BodyRefused(413, "body_too_large", f"a body has at most {self._limit} bytes")
        return message

    async def _next(self) -> Message:
        wait = BODY_WAIT_S if self._deadline is None else min(BODY_WAIT_S, self._deadline - time.monotonic())
        try:
            async with asyncio.timeout(wait):
                return await self._receive()
        except TimeoutError as error:
            raise BodyRefused(408, "body_too_slow", "the request's body did not arrive in time") from error


class _Answer:
    """``send`` that adds the headers of every answer, and the request's id to problems."""

    def __init__(self, send: Send, request_id: str, state: dict[str, Any]) -> None:
        self._send = send
        self._request_id = request_id
        self._state = state
        self._held: Message | None = None
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._request_id
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Referrer-Policy", "no-referrer")
            for name, value in charged_headers(self._state, self.status).items():
                headers[name] = value
            if headers.get("content-type") == MEDIA_TYPE:
                self._held = message
                return
        elif self._held is not None:
            await self._send_problem(message)
            return
        await self._send(message)

    async def _send_problem(self, message: Message) -> None:
        start, self._held = self._held, None
        assert start is not None
        body = message.get("body", b"")
        if body:
            body = with_request_id(body, self._request_id)
            MutableHeaders(scope=start)["Content-Length"] = str(len(body))
        await self._send(start)
        await self._send({**message, "body": body})


def _log(scope: Scope, request_id: str, status: int, seconds: float) -> None:
    client = scope.get("client")
    say = log.debug if status == 304 else log.info  # polls that found nothing new would be most of the log
    say(
        "request_served",
        method=clean(scope["method"], 16),
        path=_without_secrets(clean(scope["path"], 300)),
        status=status or 500,
        ms=round(seconds * 1000, 2),
        request_id=request_id,
        client=client[0] if client else None,
        **{k: v for k, v in scope["state"].items() if k in ("token_id", "project_id")},
    )


def _without_secrets(path: str) -> str:
    return re.sub(r"ws[trp]_[^/]*", "[token]", path)

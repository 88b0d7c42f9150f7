"""Requests with retries, problems as exceptions, and streams."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from workstead.errors import Disconnected, Problem, ProtocolError, problem_from

RETRIED_STATUS = frozenset({429, 502, 503, 504})
RATE_LIMITED_TIMES = 60
"""How often a call that came too early is sent again, besides the retries: it was refused before anything was done."""
READ_TIMEOUT_STREAM_S = 45.0
"""The server sends a heartbeat every 15 s."""
READ_TIMEOUT_UPLOAD_S = 300.0
"""The server answers when the bytes are durable."""
ERROR_BODY_BYTES = 1 << 20


class AsyncTransport:
    """One connection pool to one server. Safe calls (and those with an idempotency key) are retried."""

    def __init__(
        self, url: str, token: str, *, timeout_s: float, retries: int, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self.retries = retries
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}", "User-Agent": "workstead-client"},
            timeout=httpx.Timeout(timeout_s, connect=10),
            limits=httpx.Limits(max_connections=256),
            transport=transport,
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0,
    ) -> httpx.Response:
        """Return a 2xx or 304 answer. ``wait_s`` is how long the server may take on purpose. Raises Problem, Disconnected."""
        again = method in ("GET", "HEAD", "PUT", "DELETE") or "Idempotency-Key" in (headers or {})
        request = self._client.build_request(
            method, path, json=json, content=content, params=params, headers=headers, timeout=self._timeout_s + wait_s
        )
        tried = refused = 0
        while True:
            last = tried >= self.retries or not again
            try:
                response = await self._client.send(request)
            except httpx.TransportError as error:
                if last:
                    raise Disconnected(f"{method} {path}: {type(error).__name__} {error}") from error
                await self.pause(tried)
                tried += 1
                continue
            if response.is_success or response.status_code == 304:
                return response
            problem = problem_from(response)
            slow_down = problem.type == "rate_limited" and refused < RATE_LIMITED_TIMES
            if not slow_down and (last or not _worth_a_retry(problem)):
                raise problem
            await self.pause(0 if slow_down else tried, response.headers.get("Retry-After"))
            refused, tried = (refused + 1, tried) if slow_down else (refused, tried + 1)

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """Return the answer's JSON. Raises also ProtocolError."""
        return parse_json(await self.request(method, path, **options))

    async def send_bytes(self, path: str, content: AsyncIterator[bytes], headers: Mapping[str, str]) -> httpx.Response:
        """PUT a stream once, without retries. Raises Problem, httpx.TransportError."""
        timeout = httpx.Timeout(self._timeout_s, connect=10, read=READ_TIMEOUT_UPLOAD_S)
        response = await self._client.put(path, content=content, headers=dict(headers), timeout=timeout)
        if not response.is_success:
            raise problem_from(response)
        return response

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[httpx.Response]:
        """Open a GET whose body is read by the caller, once. Raises Problem, httpx.TransportError."""
        timeout = httpx.Timeout(self._timeout_s, connect=10, read=READ_TIMEOUT_STREAM_S)
        async with self._client.stream("GET", path, params=params, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                if int(response.headers.get("Content-Length") or 0) <= ERROR_BODY_BYTES:
                    await response.aread()
                raise problem_from(response)
            yield response

    async def pause(self, tried: int, retry_after: str | None = None) -> None:
        """Wait before a retry: what the server asked for (≤ 30 s), else 0.1 s doubling to 5 s, with jitter."""
        wait_s = min(0.1 * 2 ** min(tried, 10), 5.0) * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
        if retry_after is not None and retry_after.isdecimal():
            wait_s = min(max(wait_s, float(retry_after[:6])), 30.0)
        await asyncio.sleep(wait_s)


def _worth_a_retry(problem: Problem) -> bool:
    return problem.status in RETRIED_STATUS or (problem.status == 409 and problem.type.endswith("in_progress"))


def parse_json(response: httpx.Response) -> Any:
    """Return the body as JSON. Raises ProtocolError."""
    try:
        return response.json()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{response.request.url.path}: the answer is not JSON") from error

"""A scripted other side: answers in order, every request kept."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import httpx

from workstead.aio import AsyncClient
from workstead.sync import Client

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Script:
    """Give the answers one after the other; an exception is raised instead. Past the end is a test's mistake."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[httpx.Request] = []
        self.bodies: list[bytes] = []
        self._answers = list(answers)

    def _next(self, request: httpx.Request, body: bytes) -> httpx.Response:
        self.requests.append(request)
        self.bodies.append(body)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    def sync(self, request: httpx.Request) -> httpx.Response:
        return self._next(request, request.read())

    async def asynchronous(self, request: httpx.Request) -> httpx.Response:
        return self._next(request, await request.aread())

    @property
    def left(self) -> int:
        return len(self._answers)


def client(script: Script, retries: int = 3) -> AsyncClient:
    transport = httpx.MockTransport(script.asynchronous)
    return AsyncClient("http://there", "wst_secret", retries=retries, transport=transport)


def sync_client(script: Script, retries: int = 3) -> Client:
    return Client("http://there", "wst_secret", retries=retries, transport=httpx.MockTransport(script.sync))


def problem(status: int, slug: str, **fields: Any) -> httpx.Response:
    body = {"type": f"urn:workstead:problem:{slug}", "title": "x", "status": status, "request_id": "req_1", **fields}
    return httpx.Response(status, json=body, headers={"Content-Type": "application/problem+json"})


def run_body(run_id: str = "run_1", **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": run_id,
        "revision": 1,
        "phase": "queued",
        "task": {"id": "task_1", "name": "demo/one", "digest": "sha256:00"},
        "agent": {"id": "agt_1", "label": "solver"},
        "created_at": "2026-01-05T09:00:00.000Z",
        "a_field_of_tomorrow": {"x": 1},
    }
    return body | changes


def sse(*numbers: int, end: bool = False) -> bytes:
    texts = [f"id: {n}\ndata: {json.dumps({'seq': n, 'type': 'note', 'payload': {'n': n}})}\n\n" for n in numbers]
    return "".join([*texts, "event: end\ndata: {}\n\n" if end else ""]).encode()


class Cut(httpx.AsyncByteStream, httpx.SyncByteStream):
    """A body that breaks off after its pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = list(pieces)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        raise httpx.ReadError("cut")

"""``poll``: an unchanged run polled with If-None-Match, against a bare FastAPI route under the same kind of server.

Token and revision are read from the database each time. Both sides are asked over the same number of kept connections, in
turn, by a client that does next to nothing.
"""

import asyncio
import multiprocessing
import socket
import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Response

from service.api.server import uvicorn_config
from tests.bench.report import Result, median_ratio
from tests.journeys.jobs import make_agent, make_task, submit
from tests.journeys.stack import Stack, stack, wait_until

CONNECTIONS = 32
_UNLIMITED = {"WORKSTEAD_API__RATES__READ_PER_S": "1000000", "WORKSTEAD_API__RATES__READ_BURST": "1000000"}
Address = tuple[str, int]


class _Asker(asyncio.Protocol):
    """Sends the same request again as soon as it is answered; an answer is one packet."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.answers = 0
        self.lost = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not data.startswith(b"HTTP/1.1 304"):
            raise RuntimeError(f"not unchanged: {data[:300]!r}")
        self.answers += 1
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


async def _rate(address: Address, request: bytes, seconds: float) -> float:
    """Return answers per second."""
    loop = asyncio.get_running_loop()
    pairs = [await loop.create_connection(lambda: _Asker(request), *address) for _ in range(CONNECTIONS)]
    before, began = sum(a.answers for _, a in pairs), time.perf_counter()
    await asyncio.sleep(seconds)
    answers, took = sum(a.answers for _, a in pairs) - before, time.perf_counter() - began
    if any(a.lost for _, a in pairs):
        raise RuntimeError("a connection was closed")
    for transport, _ in pairs:
        transport.close()
    return answers / took


def poll(seconds: float = 3, turns: int = 7) -> Result:
    with stack(**_UNLIMITED) as running, _bare() as bare:
        url = urlsplit(running.url)
        ours_at = (url.hostname or "127.0.0.1", url.port or 80)
        request, plain = _request(running, *_unchanged(running)), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(turns):
            ours.append(asyncio.run(_rate(ours_at, request, seconds)))
            theirs.append(asyncio.run(_rate(bare, plain, seconds)))
    value, base = statistics.median(ours), statistics.median(theirs)
    detail = {"connections": CONNECTIONS, "seconds": seconds, "turns": turns}
    return Result("poll", value, "1/s", base, median_ratio(ours, theirs), "≥ 0.2", detail)


def _unchanged(running: Stack) -> tuple[str, str]:
    """Return path and ETag of a run that is done."""
    run = submit(running, make_task(running), make_agent(running, ["true"]))
    path = f"/v1/runs/{run}"
    wait_until("the run is done", lambda: running.call("GET", path)["phase"] == "done")
    return path, running.http.get(path).headers["ETag"]


def _request(running: Stack, path: str, tag: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {running.token}", f"If-None-Match: {tag}"]
    return "\r\n".join([*lines, "", ""]).encode()


@contextmanager
def _bare() -> Generator[Address]:
    """Serve one route that does nothing, in a process of its own."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    process = multiprocessing.get_context("fork").Process(target=_serve_bare, args=(listening,), daemon=True)
    process.start()
    try:
        yield listening.getsockname()
    finally:
        process.terminate()
        process.join(10)
        listening.close()


def _serve_bare(listening: socket.socket) -> None:
    app = FastAPI()

    @app.get("/")
    async def nothing() -> Response:
        return Response(status_code=304)

    assert nothing
    asyncio.run(uvicorn.Server(uvicorn_config(app, "127.0.0.1", 0)).serve([listening]))

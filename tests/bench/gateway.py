"""``gateway``: a streamed answer through the gateway against the same provider asked directly.

Added time to the first event (p50), rate of 200-byte events in one stream (share of the direct rate), memory of one idle
stream. The gateway is a process of its own, as ever; provider and client share the bench's.
"""

import asyncio
import contextlib
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from service.domain.errors import Unavailable
from service.domain.grants import Grant, GrantedModel
from service.domain.models import Dialect, ModelSpec
from service.domain.run_states import AttemptState
from service.gateway.auth import token_hash
from service.lifecycle.ports import Plant
from service.store import attempts, claims, migrate
from service.store.database import Database
from service.supervisor.postgres import EmbeddedPostgres
from service.workers.gateway_link import GatewayLink
from tests.bench.report import Result
from tests.fixtures.postgres import open_directory
from tests.integration.store.seeds import add_host, add_run, seed

TOKEN = "wsr_BENCHBEN_token"
EVENT = (
    b"event: content_block_delta\ndata: {"
    + b'"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'
    + b"x" * 72
    + b'"}}\n\n'
)
HEAD = b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","model":"claude-1","usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
TAIL = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
BODY = b'{"model":"claude-1","max_tokens":%d,"stream":true,"messages":[{"role":"user","content":"hi"}]}'


class _Provider:
    """``max_tokens`` says how many events; 1: the stream stays open after its beginning."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        data = b""
        while True:
            message = await receive()
            data += message.get("body", b"")
            if not message.get("more_body"):
                break
        count = int(data.split(b'"max_tokens":')[1].split(b",")[0])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": HEAD + EVENT, "more_body": True})
        if count == 1:
            await receive()
            return
        for _ in range(count // 10):
            await send({"type": "http.response.body", "body": EVENT * 10, "more_body": True})
        await send({"type": "http.response.body", "body": TAIL})


@dataclass(frozen=True)
class _Place:
    gateway: tuple[str, int]
    provider: tuple[str, int]
    pid: int


async def _stream(address: tuple[str, int], events: int) -> tuple[float, float]:
    """Return seconds to the first event and to the end of a stream."""
    body = BODY % events
    reader, writer = await asyncio.open_connection(*address)
    began = time.perf_counter()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await reader.readuntil(b"content_block_delta")
    first = time.perf_counter() - began
    while await reader.read(1 << 20):
        pass
    writer.close()
    return first, time.perf_counter() - began


async def _idle(place: _Place, count: int) -> float:
    """Return bytes of the gateway's memory per stream that is open and silent."""
    before = _rss(place.pid)
    body, open_ = BODY % 1, list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    )
    for _ in range(count):
        reader, writer = await asyncio.open_connection(*place.gateway)
        writer.write(head + body)
        await reader.readuntil(b"content_block_delta")
        open_.append((reader, writer))
    used = (_rss(place.pid) - before) / count
    for _, writer in open_:
        writer.close()
    return used


async def _both(place: _Place, pairs: int, events: int, idle: int, crowd: int) -> Result:
    await _stream(place.gateway, 20)
    firsts: list[float] = []
    rates: list[float] = []
    for _ in range(pairs):
        direct, through = await _stream(place.provider, 20), await _stream(place.gateway, 20)
        firsts.append((through[0] - direct[0]) * 1000)
    for _ in range(3):
        direct, through = await _stream(place.provider, events), await _stream(place.gateway, events)
        rates.append(direct[1] / through[1])
    memory = await _idle(place, idle)
    ended = await asyncio.gather(*(_stream(place.gateway, 200) for _ in range(crowd)), return_exceptions=True)
    added = statistics.median(firsts)
    detail = {
        "rate_ratio": round(statistics.median(rates), 3), "idle_stream_bytes": round(memory), "idle_streams": idle,
        "crowd": crowd, "crowd_failed": sum(isinstance(one, BaseException) for one in ended),
    }  # fmt: skip
    goal = "<= 3 ms; rate_ratio >= 0.3; idle_stream_bytes <= 100000"
    return Result("gateway", added, "ms added to first event, p50", goal=goal, detail=detail)


@asynccontextmanager
async def _provider() -> AsyncGenerator[int]:
    config = uvicorn.Config(_Provider(), host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await running


def gateway(pairs: int = 40, events: int = 100_000, idle_streams: int = 1000, crowd: int = 200) -> Result:
    """Run it all."""
    with open_directory() as data, EmbeddedPostgres(data / "pg", durable=False) as server:
        migrate.upgrade(server.url)
        (data / "data").mkdir(mode=0o711)
        return asyncio.run(_bench(data / "data", server.url, pairs, events, idle_streams, crowd))


async def _bench(data: Path, url: str, pairs: int, events: int, idle_streams: int, crowd: int) -> Result:
    db = Database(url)
    env = {**os.environ, "WORKSTEAD_DATA_DIR": str(data), "WORKSTEAD_DATABASE_URL": url,
           "WORKSTEAD_WORKER__HOST_ID": "h1", "WORKSTEAD_GATEWAY__CONNECTIONS_PER_RUN": "5000"}  # fmt: skip
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "service", "gateway", env=env)
    async with _provider() as port:
        link = GatewayLink(data / "gateway")
        linking = asyncio.create_task(link.run())
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        at = listener.getsockname()[1]

        async def plant(_: int) -> socket.socket:
            return listener

        try:
            await _opened(link, await _grant(db, port), plant)
            return await _both(
                _Place(("127.0.0.1", at), ("127.0.0.1", port), process.pid), pairs, events, idle_streams, crowd
            )
        finally:
            linking.cancel()
            process.terminate()
            await process.wait()
            await db.close()


async def _opened(link: GatewayLink, grant: Grant, plant: Plant) -> None:
    for _ in range(10):
        with contextlib.suppress(Unavailable):
            await link.open(grant, plant)
            return
    raise TimeoutError("no gateway")


async def _grant(db: Database, port: int) -> Grant:
    async with db.transaction() as tx:
        seeds = await seed(tx, "bench")
        host = await add_host(tx)
        await add_run(tx, seeds)
    async with db.transaction() as tx:
        (claimed,) = await claims.claim(tx, host, 1)
        attempt = await attempts.advance(tx, claimed, AttemptState.BOUND)
    spec = ModelSpec(name="bench/model", provider="bench", upstream_id="claude-1", dialect=Dialect.ANTHROPIC,
                     base_url=f"http://127.0.0.1:{port}")  # fmt: skip
    return Grant(
        run_id=attempt.run_id, attempt=attempt.n, fence=attempt.fence, project_id=seeds.project.id,
        token_hashes=[token_hash(TOKEN)], models=[GrantedModel(id="mdl_1", spec=spec, private=True)], seconds_left=3600,
    )  # fmt: skip


def _rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

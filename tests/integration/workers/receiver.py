"""A receiver of webhooks that can be told to misbehave."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)


def fine(_: "Received") -> str | None:
    return "204 No Content"


@dataclass
class Receiver:
    """``answer`` gives the status line (and headers) for a request; None: never any answer."""

    answer: Callable[[Received], str | None] = fine
    seen: list[Received] = field(default_factory=list[Received])
    port: int = 0
    open: int = 0
    most_open: int = 0

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def types(self, path: str = "/") -> list[str]:
        return [r.event["type"] for r in self.seen if r.path == path]

    async def until(self, count: int, timeout_s: float = 20) -> list[Received]:
        async with asyncio.timeout(timeout_s):
            while len(self.seen) < count:  # noqa: ASYNC110 - filled by connections
                await asyncio.sleep(0.01)
        return self.seen

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            got = Received(head[0].split()[1], headers, body)
            self.seen.append(got)
            status = self.answer(got)
            if status is None:
                await reader.read()  # until the caller gives up
            else:
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        self.open -= 1
        writer.close()


@asynccontextmanager
async def receiving(answer: Callable[[Received], str | None] = fine) -> AsyncGenerator[Receiver]:
    receiver = Receiver(answer)
    server = await asyncio.start_server(receiver._serve, "127.0.0.1", 0)  # pyright: ignore[reportPrivateUsage]
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()

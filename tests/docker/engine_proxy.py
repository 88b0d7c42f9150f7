"""A proxy before the real engine's socket that does one thing wrong: the engine itself is never faked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

Fault = Literal["none", "hang", "reset", "garbage", "cut", "trickle"]
CUT_AT = 120


class FaultyProxy:
    """``fault`` may be changed at any time; it applies to answers of connections made later."""

    def __init__(self, engine: Path) -> None:
        self.fault: Fault = "none"
        self._engine = engine
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_in, upstream_out = await asyncio.open_unix_connection(str(self._engine))
        requests = asyncio.create_task(_copy(reader, upstream_out))
        try:
            await self._answers(upstream_in, writer)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            requests.cancel()
            await asyncio.gather(requests, return_exceptions=True)
            for end in (writer, upstream_out):
                end.close()

    async def _answers(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await upstream.read(65536):
            match self.fault:
                case "hang":
                    await asyncio.sleep(30)
                case "reset":
                    writer.transport.abort()
                    return
                case "garbage":
                    writer.write(b"\x00\xff" * 200)
                case "cut":
                    writer.write(data[:CUT_AT])
                    return
                case "trickle":
                    for byte in data:
                        writer.write(bytes([byte]))
                        await asyncio.sleep(0.2)
                case "none":
                    writer.write(data)
            await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def faulty_engine(folder: Path, engine: Path) -> AsyncGenerator[tuple[FaultyProxy, str]]:
    """Give the proxy and the URL to reach the engine through it."""
    proxy = FaultyProxy(engine)
    path = folder / "engine.sock"
    server = await asyncio.start_unix_server(proxy.accept, str(path))
    try:
        yield proxy, f"unix://{path}"
    finally:
        server.close()
        await proxy.close()

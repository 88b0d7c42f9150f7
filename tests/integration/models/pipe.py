"""The gateway's Unix socket as far as a client can tell: bytes go to a provider's port, unchanged."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def piped(path: Path, port: int) -> AsyncGenerator[None]:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers, both = [writer], list[asyncio.Task[None]]()
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
            writers.append(back)
            both += [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)  # HTTP closes no half of a connection
            for one in writers:  # what was written still arrives; the far end may have stopped reading
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(1):
                        await one.drain()
        finally:
            for task in both:
                task.cancel()
            for one in writers:
                one.close()
            await asyncio.gather(*both, return_exceptions=True)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_unix_server(begin, path)
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()
        if tasks:
            for task in list(tasks):
                task.cancel()
            await asyncio.wait(tasks, timeout=5)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()

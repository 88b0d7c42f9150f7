"""VNC servers that a sandbox may have: one that keeps to RFB 3.8 and notes what it is told, and some that do not."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

WIDTH, HEIGHT = 64, 48
INIT = (
    struct.pack(">HH16sI", WIDTH, HEIGHT, bytes([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]), 4) + b"fake"
)
PIECE = bytes(32 << 10)


@dataclass(slots=True)
class FakeVnc:
    manner: str = "good"
    """good | silent (accepts, says nothing) | flood (sends for ever, reads nothing) | rude (closes at once)"""
    port: int = 0
    heard: bytearray = field(default_factory=bytearray)
    """After the greeting."""
    sent: int = 0
    open: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    @classmethod
    @asynccontextmanager
    async def serving(cls, manner: str = "good") -> AsyncGenerator["FakeVnc"]:
        made = cls(manner)
        server = await asyncio.start_server(made._serve, "127.0.0.1", 0)
        made.port = server.sockets[0].getsockname()[1]
        try:
            yield made
        finally:
            server.close()
            for writer in made.writers:
                writer.transport.abort()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.open += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._talk(reader, writer)
        finally:
            self.open -= 1
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.manner == "rude":
            return
        if self.manner == "silent":
            await reader.read()
            return
        writer.write(b"RFB 003.008\n")
        if self.manner == "flood":
            while True:
                writer.write(PIECE)
                await writer.drain()
                self.sent += len(PIECE)
        await reader.readexactly(12)
        writer.write(b"\x01\x01")
        await reader.readexactly(1)
        writer.write(bytes(4))
        self.heard += await reader.readexactly(1)
        writer.write(INIT)
        while data := await reader.read(4096):
            self.heard += data

    def show(self, data: bytes) -> None:
        """Say something to every viewer."""
        for writer in self.writers:
            writer.write(data)

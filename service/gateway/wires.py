"""One connection of ours to a provider: what httpcore needs of a socket, over asyncio's own transports.

A request's head and body leave together, and whether the other side has hung up is known without asking the kernel.
"""

import asyncio
from typing import Any, cast

import httpcore

MOST_HELD = 256 << 10
"""Bytes that came and were not read: from then on the other side has to wait."""
_TOGETHER = 64 << 10
"""Bytes of a request that wait for what follows them."""


class Wire(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """Used by one request at a time. Raises httpcore's errors."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._came = bytearray()
        self._going: list[bytes] = []
        self._over = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._write_s: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._came += data
        if len(self._came) > MOST_HELD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over, self._error = True, exc
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        """Send what waits, and return what came; nothing is the end."""
        await self._flush()
        if not self._came and not self._over:
            await self._something(timeout)
        if not self._came and self._error is not None:
            raise httpcore.ReadError(str(self._error)) from self._error
        if len(self._came) <= max_bytes:
            data, self._came = bytes(self._came), bytearray()
        else:
            data = bytes(self._came[:max_bytes])
            del self._came[:max_bytes]
        if self._transport is not None and len(self._came) <= MOST_HELD and not self._over:
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's signature
        """Keep a little to be sent with what follows: whoever has asked reads next."""
        self._write_s = timeout
        if buffer:
            self._going.append(buffer)
        if sum(map(len, self._going)) > _TOGETHER:
            await self._flush()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()

    async def aclose(self) -> None:
        self.abort()
        await asyncio.sleep(0)  # the loop closes the socket in its next round

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # of an idle connection: its end, or words that nobody asked for
            return self._over or bool(self._came)
        return None if self._transport is None else self._transport.get_extra_info(info)

    async def _flush(self) -> None:
        """What cannot be sent is no error yet: the other side may have answered before it hung up."""
        if not self._going or self._transport is None:
            return
        going, self._going = self._going, []
        if not self._over:
            self._transport.write(b"".join(going) if len(going) > 1 else going[0])
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(self._write_s):
                    await self._writable.wait()
            except TimeoutError as error:
                raise httpcore.WriteTimeout from error

    async def _something(self, timeout: float | None) -> None:  # noqa: ASYNC109 - as above
        self._reader = asyncio.get_running_loop().create_future()
        try:
            if timeout is None:
                await self._reader
                return
            async with asyncio.timeout(timeout):
                await self._reader
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        finally:
            self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

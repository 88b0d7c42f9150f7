"""How a worker hands listeners to the gateway: messages with descriptors over a Unix socket (CONTRACTS 6).

A message is four bytes of length, then JSON: ``{"id": n, "do": …}`` from the worker, ``{"id": n, "ok": …}`` or
``{"id": n, "error": type, "detail": …}`` back. The descriptors of a message travel with its first bytes; ``fds`` in it
says how many they are. Requests overlap: an answer names the one that it belongs to.
"""

import array
import asyncio
import contextlib
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

MAX_MESSAGE = 2 << 20
MAX_FDS = 4
_LENGTH = struct.Struct("!I")
_ANCILLARY = socket.CMSG_SPACE(8 * MAX_FDS * struct.calcsize("i"))
Message = dict[str, Any]


class WireClosed(Exception):
    """The other side is gone, or says what cannot be understood."""


class Wire:
    """One connection. ``receive`` has one caller; ``send`` may be called from several tasks."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._buffer = bytearray()
        self._fds: deque[int] = deque()
        self._sending = asyncio.Lock()

    async def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Raises WireClosed."""
        body = json.dumps({**message, "fds": len(fds)}).encode()
        data = _LENGTH.pack(len(body)) + body
        loop = asyncio.get_running_loop()
        async with self._sending:
            try:
                sent = await self._send_first(data, fds)
                await loop.sock_sendall(self._sock, data[sent:])
            except OSError as error:
                raise WireClosed(str(error)) from error

    async def receive(self) -> tuple[Message, list[int]]:
        """Return the next message and its descriptors, which are the caller's to close. Raises WireClosed."""
        body = await self._take(_LENGTH.unpack(await self._take(_LENGTH.size))[0])
        try:
            message = json.loads(body)
            count = int(message["fds"])
            fds = [self._fds.popleft() for _ in range(count)]
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise WireClosed("not a message") from error
        return cast("Message", message), fds

    def peer_uid(self) -> int:
        """Return the user of the process that connected."""
        found = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", found)[1])

    def close(self) -> None:
        self._sock.close()
        while self._fds:
            os.close(self._fds.popleft())

    async def _send_first(self, data: bytes, fds: Sequence[int]) -> int:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        while True:
            try:
                return self._sock.sendmsg([data], rights)
            except BlockingIOError:
                await _ready(self._sock, write=True)

    async def _take(self, size: int) -> bytes:
        if size > MAX_MESSAGE:
            raise WireClosed("the message is too long")
        while len(self._buffer) < size:
            try:
                data, ancillary, flags, _ = self._sock.recvmsg(64 << 10, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                await _ready(self._sock, write=False)
                continue
            except OSError as error:
                raise WireClosed(str(error)) from error
            self._keep_descriptors(ancillary)
            if not data or flags & socket.MSG_CTRUNC or len(self._fds) > MAX_FDS:
                raise WireClosed("the other side is gone")
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _keep_descriptors(self, ancillary: Sequence[tuple[int, int, bytes]]) -> None:
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(data[: len(data) - len(data) % found.itemsize])
                self._fds.extend(found)


async def _ready(sock: socket.socket, *, write: bool) -> None:
    """Return when the socket can be written to, or read from."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    fd = sock.fileno()
    if fd < 0:
        raise OSError("the connection is closed")
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(fd, event.set)
    try:
        await event.wait()
    finally:
        with contextlib.suppress(ValueError):
            remove(fd)

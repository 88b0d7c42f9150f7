"""The connection to the host."""

from __future__ import annotations

import os
import select
import struct

import launcher_wire as wire
from launcher_files import Files
from launcher_loop import Loop
from launcher_output import Program
from launcher_small import deque, socket

HANDSHAKE_S = 10.0


class Hub:
    """What a connection needs of the launcher."""

    def __init__(self, workspace: bytes) -> None:
        self.workspace = workspace
        self.loop = Loop()
        self.key: bytes | None = None
        self.program: Program | None = None
        self.channel: Channel | None = None

    def handle(self, channel: Channel, kind: int, flag: int, value: int, body: bytes) -> None:
        raise NotImplementedError

    def disconnect(self) -> None:
        raise NotImplementedError

    def followed(self) -> bytes | None:
        """The next message of a tool call's output, for whoever follows it."""
        raise NotImplementedError


class Channel:
    """One connection to the host: handshake, then messages in both directions; output is pulled, never queued up."""

    def __init__(self, launcher: Hub, sock: socket.socket) -> None:
        self.launcher, self.sock = launcher, sock
        self.fd = sock.fileno()
        self.ready = self.subscribed = self.exit_sent = False
        self.nonce = os.urandom(32)
        self.received = bytearray()
        self.replies: deque[bytes] = deque()
        self.sending = memoryview(b"")
        self.files = Files(launcher.workspace)
        launcher.loop.watch(self.fd, select.EPOLLIN, self.receive)
        launcher.loop.after(self, HANDSHAKE_S, launcher.disconnect)
        self.send(wire.HELLO, wire.VERSION, self.nonce, 1 if launcher.key else 0)

    def send(self, kind: int, value: int, body: bytes, flag: int = 0) -> None:
        head = wire.HEADER.pack(kind, flag, value, len(body))
        self.replies.extend([head + body] if len(body) <= wire.FRAME else [head, body])

    def receive(self) -> None:
        try:
            data = self.sock.recv(wire.TRANSFER)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.launcher.disconnect()
            return
        self.received += data
        try:
            self._dispatch()
        except (ValueError, IndexError, struct.error):
            self.launcher.disconnect()

    def _dispatch(self) -> None:
        while len(self.received) >= wire.HEADER.size and self.launcher.channel is self:
            kind, flag, value, length = wire.HEADER.unpack_from(self.received)
            if length > wire.MAX_MESSAGE:
                raise ValueError("oversized message")
            if len(self.received) < wire.HEADER.size + length:
                return
            body = bytes(memoryview(self.received)[wire.HEADER.size : wire.HEADER.size + length])
            del self.received[: wire.HEADER.size + length]
            if self.ready:
                self.launcher.handle(self, kind, flag, value, body)
            else:
                self._shake(kind, body)

    def _shake(self, kind: int, body: bytes) -> None:
        if kind == wire.READY and not self.nonce:
            self.ready = True
            self.launcher.loop.timers.pop(self, None)
            return
        nonce, proof, key = body[:32], body[32:64], body[64:]
        if self.launcher.key is None and len(key) == 32:
            self.launcher.key = key
        known = self.launcher.key
        if (
            kind != wire.CHALLENGE
            or known is None
            or not wire.same(proof, wire.prove(known, b"host", nonce, self.nonce))
        ):
            raise ValueError("not our host")
        self.send(wire.PROOF, 0, wire.prove(known, b"launcher", self.nonce, nonce))
        self.nonce = b""

    def _next(self) -> bytes | None:
        if self.replies:
            return self.replies.popleft()
        program = self.launcher.program
        if program is None or not self.subscribed:
            return self._small_piece()
        if program.delivered() and not self.exit_sent and program.exit is not None:
            self.exit_sent = True
            return wire.HEADER.pack(wire.EXIT, 0, 0, len(program.exit)) + program.exit
        return program.frame() or self._small_piece()

    def _small_piece(self) -> bytes | None:
        return self.launcher.followed() or self.files.piece()

    def flush(self) -> None:
        try:
            while True:
                if not self.sending:
                    message = self._next()
                    if message is None:
                        self.launcher.loop.watch(self.fd, select.EPOLLIN, self.receive)
                        return
                    self.sending = memoryview(message)
                self.sending = self.sending[self.sock.send(self.sending) :]
        except BlockingIOError:
            self.launcher.loop.watch(self.fd, select.EPOLLIN | select.EPOLLOUT, self.receive)
        except OSError:
            self.launcher.disconnect()

    def close(self) -> None:
        self.launcher.loop.timers.pop(self, None)
        self.launcher.loop.forget(self.fd)
        self.sock.close()
        self.files.close()

"""One accepted connection: nobody until it has proved that it holds the key, then the launcher."""

import asyncio
import hmac
import os
import socket
from collections.abc import Callable
from typing import Protocol

from service.sandboxes.docker.framing import (
    KEY_BYTES,
    MAX_MESSAGE,
    NONCE_BYTES,
    VERSION,
    Inbox,
    Kind,
    Message,
    Violation,
    encode,
    prove,
)

HANDSHAKE_S = 2.0
SEND_BUFFER = 1 << 20
"""Bytes on their way to one launcher: enough that neither side waits for the other at each piece of a file."""


Follower = Callable[[int, bytes], None]
"""Called with flag and body."""


class Disconnected(Exception):
    """The connection ended before the answer came."""


class Keeper(Protocol):
    """Who owns the key, and is told of the peer's fate."""

    @property
    def key(self) -> bytes: ...
    def may_hand_over_key(self) -> bool:
        """True once in the life of a sandbox, before any agent code ran."""
        ...

    def peer_ready(self, peer: "Peer") -> None: ...
    def peer_ended(self, peer: "Peer") -> None: ...
    def peer_sent(self, peer: "Peer", message: Message) -> None:
        """Raises Violation."""
        ...


class Peer(asyncio.Protocol):
    """Handshake: hello → challenge (our nonce, our proof, the key if it has none yet) → proof → ready."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._inbox = Inbox()
        self._nonce = os.urandom(NONCE_BYTES)
        self._their_nonce: bytes | None = None
        self._transport: asyncio.Transport | None = None
        self._futures: dict[int, asyncio.Future[bytes]] = {}
        self._sinks: dict[int, tuple[bytearray, int]] = {}
        self._followers: dict[int, Follower] = {}
        self._writable = asyncio.Event()
        self._writable.set()
        self._timer: asyncio.TimerHandle | None = None
        self.authenticated = False
        self.ended = asyncio.Event()
        self.decided = asyncio.Event()
        """Authenticated, or gone."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        transport.set_write_buffer_limits(high=SEND_BUFFER)
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_S, self.abort)

    def data_received(self, data: bytes) -> None:
        self._inbox.feed(data)
        try:
            for message in self._inbox.messages():
                if self.authenticated:
                    self._take(message)
                else:
                    self._shake(message)
        except Violation:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        self._transport = None
        self._stop_timer()
        self.ended.set()
        self.decided.set()
        self._writable.set()
        for future in self._futures.values():
            if not future.done():
                future.set_exception(Disconnected())
        self._futures.clear()
        self._keeper.peer_ended(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def abort(self) -> None:
        """Drop the connection at once, without flushing."""
        if self._transport is not None:
            self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _shake(self, message: Message) -> None:
        if self._their_nonce is None:
            self._challenge(message)
        else:
            self._check_proof(message)

    def _challenge(self, message: Message) -> None:
        if message.kind != Kind.HELLO or message.number != VERSION or len(message.body) != NONCE_BYTES:
            raise Violation("not a hello of ours")
        key = b""
        if message.flag == 0:
            if not self._keeper.may_hand_over_key():
                raise Violation("a peer without the key, after it was handed over")
            key = self._keeper.key
        assert len(self._keeper.key) == KEY_BYTES
        self._their_nonce = message.body
        proof = prove(self._keeper.key, b"host", self._nonce, message.body)
        self.post(Kind.CHALLENGE, body=self._nonce + proof + key)

    def _check_proof(self, message: Message) -> None:
        expected = prove(self._keeper.key, b"launcher", self._their_nonce or b"", self._nonce)
        if message.kind != Kind.PROOF or not hmac.compare_digest(message.body, expected):
            raise Violation("a wrong proof")
        self._stop_timer()
        self.authenticated = True
        self.decided.set()
        self._inbox.limit = MAX_MESSAGE
        self.post(Kind.READY)
        self._keeper.peer_ready(self)

    def _take(self, message: Message) -> None:
        if message.kind == Kind.RESULT:
            future = self._futures.pop(message.number, None)
            if future is not None and not future.done():
                future.set_result(message.body)
        elif message.kind == Kind.DATA:
            follower = self._followers.get(message.number)
            if follower is not None:
                follower(message.flag, message.body)
                return
            sink = self._sinks.get(message.number)
            if sink is None:
                return
            if len(sink[0]) + len(message.body) > sink[1]:
                raise Violation("a file larger than asked for")
            sink[0].extend(message.body)
        else:
            self._keeper.peer_sent(self, message)

    def post(self, kind: Kind, *, flag: int = 0, number: int = 0, body: bytes = b"") -> None:
        """Send without waiting. For small messages whose number is bounded by what the caller awaits."""
        if self._transport is not None:
            self._transport.write(encode(kind, flag=flag, number=number, body=body))

    async def send(self, kind: Kind, *, flag: int = 0, number: int = 0, body: bytes = b"") -> None:
        """Send, waiting while the launcher does not read. Raises Disconnected."""
        if not self._writable.is_set():
            await self._writable.wait()
        if self._transport is None:
            raise Disconnected
        self.post(kind, flag=flag, number=number, body=body)

    def expect(self, number: int) -> asyncio.Future[bytes]:
        """Return a future for the result of request ``number``; it raises Disconnected."""
        future = asyncio.get_running_loop().create_future()
        if self._transport is None:
            future.set_exception(Disconnected())
        else:
            self._futures[number] = future
        return future

    def collect(self, number: int, limit: int) -> bytearray:
        """Gather the data of request ``number``, at most ``limit`` bytes."""
        sink = bytearray()
        self._sinks[number] = (sink, limit)
        return sink

    def follow(self, number: int, follower: Follower) -> None:
        """Hand the data of request ``number`` on as it comes; the follower raises Violation at too much."""
        self._followers[number] = follower

    def forget(self, number: int) -> None:
        self._futures.pop(number, None)
        self._followers.pop(number, None)
        self._sinks.pop(number, None)

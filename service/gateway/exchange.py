"""One request and its answer, over ASGI: what the rest of the gateway needs of HTTP."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from service.gateway.auth import Refused
from service.gateway.limits import GatewayLimits
from service.gateway.targets import read_escaped_path, read_path, read_query

DISCARD_S = 5.0
DISCARD_BYTES = 64 << 20


class ClientGone(Exception):
    """Nobody is there to be answered."""


class Exchange:
    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]
        self.started = False
        self.ended = False
        self._whole = False

    @property
    def shown_path(self) -> str:
        """As it came, decoded: for guesses only."""
        return str(self._scope["path"])

    def path(self) -> str:
        """Raises Refused (400)."""
        return read_path(self._scope["raw_path"], self._scope["path"])

    def escaped_path(self) -> str:
        """Return the path with escaped slashes left as they are. Raises Refused (400)."""
        return read_escaped_path(self._scope["raw_path"])

    def query(self) -> dict[str, str]:
        """Raises Refused (400)."""
        return read_query(self._scope["query_string"])

    @property
    def raw_query(self) -> bytes:
        return bytes(self._scope["query_string"])

    def header(self, name: str) -> str | None:
        return next((value for found, value in self.headers if found == name), None)

    async def body(self, limits: GatewayLimits) -> bytes:
        """Return the whole body. Raises Refused (413, 408), ClientGone."""
        pieces, size = list[bytes](), 0
        try:
            async with asyncio.timeout(limits.body_s):
                while not self._whole and size <= limits.max_body_bytes:
                    pieces.append(await self._piece(limits.body_idle_s))
                    size += len(pieces[-1])
        except TimeoutError:
            raise Refused(408, "body_too_slow", "the request's body did not come in time") from None
        if size > limits.max_body_bytes:
            await self._discard()
            raise Refused(413, "body_too_large", f"a request may have {limits.max_body_bytes} bytes")
        return b"".join(pieces)

    async def _piece(self, wait_s: float) -> bytes:
        """Raises TimeoutError, ClientGone."""
        async with asyncio.timeout(wait_s):
            message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._whole = not message.get("more_body", False)
        return bytes(message.get("body", b""))

    async def _discard(self) -> None:
        """Take some more, since a client that is still sending does not read what it is told."""
        size = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_S):
                while not self._whole and size < DISCARD_BYTES:
                    size += len(await self._piece(DISCARD_S))

    async def gone(self) -> None:
        """Return when the client has left. Only after :meth:`body`, by one waiter."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Answer as a whole. A body that was not read cannot be followed by another request."""
        fixed = {"content-length": str(len(body))}
        if not self._whole and self.method not in ("GET", "HEAD"):
            fixed["connection"] = "close"
        await self.start(status, [*headers.items(), *fixed.items()])
        await self._send({"type": "http.response.body", "body": body if self.method != "HEAD" else b""})
        self.ended = True

    async def start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.started = True
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def send(self, data: bytes) -> None:
        """Send a piece of the body; returns when the client has taken enough of what was sent before."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the answer. One that is never ended is broken off when the application returns."""
        await self._send({"type": "http.response.body", "body": b""})
        self.ended = True

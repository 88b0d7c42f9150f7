"""As much of a WebSocket client (RFC 6455) as a terminal needs: blocking, one message at a time, no extensions."""

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from workstead.errors import Disconnected, problem_of

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAX_MESSAGE = 1 << 20
MAX_HEAD = 64 << 10
CONNECT_S = 15.0
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True, slots=True)
class Message:
    kind: int
    """TEXT, BINARY or CLOSE."""
    data: bytes


class WebSocket:
    """An open connection. Raises Disconnected when it breaks or the other side breaks the protocol."""

    def __init__(self, sock: socket.socket, received: bytes = b"") -> None:
        self._sock = sock
        self._received = bytearray(received)

    @classmethod
    def open(cls, url: str, headers: dict[str, str]) -> Self:
        """Connect to an http(s) URL. Raises Problem for what the server refuses, Disconnected."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        key = base64.b64encode(os.urandom(16)).decode()
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        lines = [f"GET {target} HTTP/1.1", f"Host: {parts.netloc}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", *(f"{k}: {v}" for k, v in headers.items())]
        try:
            sock: socket.socket = socket.create_connection((parts.hostname or "", port), CONNECT_S)
            if parts.scheme == "https":
                sock = ssl.create_default_context().wrap_socket(sock, server_hostname=parts.hostname)
            sock.sendall("\r\n".join([*lines, "", ""]).encode())
            head, rest = _head(sock)
        except OSError as error:
            raise Disconnected(f"{url}: {error}") from error
        _check(sock, head, rest, key)
        sock.settimeout(None)
        return cls(sock, rest)

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def pending(self) -> bool:
        """Bytes are here that ``select`` knows nothing of."""
        waiting = self._sock.pending() if isinstance(self._sock, ssl.SSLSocket) else 0
        return bool(self._received) or waiting > 0

    def send(self, kind: int, data: bytes) -> None:
        size = len(data)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([0x80 | size])
        else:
            head += (
                bytes([0x80 | 126]) + struct.pack(">H", size) if size < 1 << 16 else b"\xff" + struct.pack(">Q", size)
            )
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        try:
            self._sock.sendall(head + mask + masked)
        except OSError as error:
            raise Disconnected(str(error)) from error

    def receive(self) -> Message:
        """Return the next message; pings are answered on the way."""
        kind, whole = 0, b""
        while True:
            final, code, data = self._frame()
            if code == PING:
                self.send(PONG, data)
            elif code == CLOSE:
                return Message(CLOSE, data)
            elif code in (0, TEXT, BINARY):
                kind, whole = code or kind, whole + data
                if len(whole) > MAX_MESSAGE:
                    raise Disconnected("a message larger than allowed")
                if final:
                    return Message(kind, whole)

    def close(self) -> None:
        self._sock.close()

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._take(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._take(8))
        if second & 0x80 or size > MAX_MESSAGE:
            raise Disconnected("the server broke the protocol")
        return bool(first & 0x80), first & 0x0F, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            try:
                data = self._sock.recv(64 << 10)
            except OSError as error:
                raise Disconnected(str(error)) from error
            if not data:
                raise Disconnected("the connection was closed")
            self._received += data
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken


def _head(sock: socket.socket) -> tuple[bytes, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        data = sock.recv(4096)
        if not data or len(received) > MAX_HEAD:
            raise OSError("no answer to the handshake")
        received += data
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def _check(sock: socket.socket, head: bytes, rest: bytes, key: str) -> None:
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ")[1]) if lines[0].count(" ") >= 1 and lines[0].split(" ")[1].isdecimal() else 0
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    wanted = base64.b64encode(hashlib.sha1((key + _GUID).encode(), usedforsecurity=False).digest()).decode()
    if status == 101 and hmac.compare_digest(fields.get("sec-websocket-accept", ""), wanted):
        return
    body = _body(sock, fields, rest)
    sock.close()
    if status < 400:
        raise Disconnected(f"the server does not speak WebSocket (status {status})")
    raise problem_of(status, body)


def _body(sock: socket.socket, fields: dict[str, str], rest: bytes) -> dict[str, object]:
    import json  # noqa: PLC0415 - only for what went wrong

    size = int(fields["content-length"]) if fields.get("content-length", "").isdecimal() else 0
    try:
        while len(rest) < min(size, MAX_HEAD):
            data = sock.recv(4096)
            if not data:
                break
            rest += data
        found: object = json.loads(rest or b"{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - JSON

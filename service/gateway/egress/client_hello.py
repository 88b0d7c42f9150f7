"""The server name in a TLS ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3), read without a TLS library."""

MOST_BYTES = 16 << 10
"""Of a ClientHello over all its records; a longer one is refused."""
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0


class NotTls(Exception):
    """What was sent is no ClientHello."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise NotTls
        self._at += count
        return piece

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def vector(self, width: int) -> bytes:
        return self.take(self.number(width))

    @property
    def left(self) -> bool:
        return self._at < len(self._data)


def server_name(data: bytes) -> str | None:
    """Return the SNI of the ClientHello that ``data`` begins with; null while it is not all there.

    An empty text: it names none. Raises NotTls, also where it is longer than MOST_BYTES.
    """
    hello = _handshake(data)
    return None if hello is None else _name_of(hello)


def _handshake(data: bytes) -> bytes | None:
    body = bytearray()
    at = 0
    while True:
        head = data[at : at + 5]
        if (head and head[0] != _HANDSHAKE) or (len(head) > 1 and head[1] != 3):
            raise NotTls
        size = int.from_bytes(head[3:5], "big") if len(head) == 5 else 0
        if len(head) < 5 or len(data) < at + 5 + size:
            if len(data) > MOST_BYTES:
                raise NotTls
            return None
        body += data[at + 5 : at + 5 + size]
        at += 5 + size
        if size == 0 or len(body) > MOST_BYTES:
            raise NotTls
        if len(body) >= 4:
            if body[0] != _CLIENT_HELLO:
                raise NotTls
            wanted = int.from_bytes(body[1:4], "big")
            if wanted > MOST_BYTES:
                raise NotTls
            if len(body) >= 4 + wanted:
                return bytes(body[4 : 4 + wanted])


def _name_of(hello: bytes) -> str:
    reader = _Reader(hello)
    reader.take(2 + 32)  # version, random
    reader.vector(1)  # session id
    reader.vector(2)  # cipher suites
    reader.vector(1)  # compression methods
    if not reader.left:
        return ""
    extensions = _Reader(reader.vector(2))
    while extensions.left:
        kind, body = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            return _first_host(body)
    return ""


def _first_host(body: bytes) -> str:
    names = _Reader(_Reader(body).vector(2))
    found = ""
    while names.left:
        kind, name = names.number(1), names.vector(2)
        if kind != _HOST_NAME or found:
            raise NotTls  # two names: one for us, one for the server
        found = name.decode("ascii", "replace")
    return found

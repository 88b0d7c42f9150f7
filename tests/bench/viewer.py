"""As much of a VNC viewer as a bench needs: pictures are skipped, their sizes are known (ZRLE says its length)."""

import struct
from typing import Any

from websockets.sync.client import connect
from websockets.typing import Subprotocol

_ZRLE = 16


class Viewer:
    """Watches a screen, and types; blocking."""

    def __init__(self, url: str) -> None:
        self._socket = connect(url, subprotocols=[Subprotocol("binary")], compression=None, max_size=None)
        self._got = bytearray()
        self._socket.send(self._take(12))
        self._take(self._take(1)[0])
        self._socket.send(b"\x01")
        self._take(4)
        self._socket.send(b"\x01")
        self.width, self.height, _, name = struct.unpack(">HH16sI", self._take(24))
        self._take(name)
        self._socket.send(struct.pack(">BBHi", 2, 0, 1, _ZRLE))
        self._ask(incremental=False)
        self.update(30)

    def press(self, keysym: int) -> None:
        self._socket.send(struct.pack(">BBHI", 4, 1, 0, keysym) + struct.pack(">BBHI", 4, 0, 0, keysym))

    def update(self, timeout_s: float) -> int:
        """Return the pixels of the next change, having asked for another. Raises TimeoutError."""
        while True:
            kind = self._take(1, timeout_s)[0]
            if kind == 0:
                break
            if kind == 3:  # somebody's clipboard
                self._take(struct.unpack(">3xI", self._take(7))[0])
            elif kind != 2:
                raise ValueError(f"message {kind}")
        _, rectangles = struct.unpack(">BH", self._take(3))
        pixels = 0
        for _ in range(rectangles):
            _, _, width, height, encoding = struct.unpack(">HHHHi", self._take(12))
            pixels += width * height
            self._take(struct.unpack(">I", self._take(4))[0] if encoding == _ZRLE else width * height * 4)
        self._ask(incremental=True)
        return pixels

    def close(self) -> None:
        self._socket.close()

    def _ask(self, *, incremental: bool) -> None:
        self._socket.send(struct.pack(">BBHHHH", 3, incremental, 0, 0, self.width, self.height))

    def _take(self, size: int, timeout_s: float | None = 30) -> bytes:
        while len(self._got) < size:
            data: Any = self._socket.recv(timeout_s)
            self._got += data
        taken = bytes(self._got[:size])
        del self._got[:size]
        return taken

"""One answer as it passes: its bytes up to a bound, and when they came."""

import time
from dataclasses import dataclass, field
from typing import Any

_CHUNKS = 2000
_TOGETHER_MS = 2
"""Pieces that come within this time of each other are one chunk of a recording."""


@dataclass(slots=True)
class Recording:
    limit: int
    content_type: str = ""
    size: int = 0
    """Of the whole answer so far, kept or not."""
    chunks: list[list[int]] = field(default_factory=list[list[int]])
    """[milliseconds since the request, bytes]; their sum is ``size``."""
    began: float = field(default_factory=time.monotonic)
    _data: bytearray = field(default_factory=bytearray, repr=False)

    def take(self, data: bytes) -> None:
        now = round((time.monotonic() - self.began) * 1000)
        self.size += len(data)
        self._data += data[: max(0, self.limit - len(self._data))]
        last = self.chunks[-1] if self.chunks else None
        if last is not None and (now - last[0] <= _TOGETHER_MS or len(self.chunks) >= _CHUNKS):
            last[1] += len(data)
        else:
            self.chunks.append([now, len(data)])

    def data(self) -> bytes:
        return bytes(self._data)

    def cassette(self) -> dict[str, Any]:
        """Return what a replay needs beside the bodies."""
        return {"v": 1, "content_type": self.content_type, "chunks": self.chunks}

"""The client's side of RFB (the VNC protocol), read byte by byte: what a viewer may say to a run's screen.

A viewer asks for pictures; whoever holds the desktop also types and points. What is not known, too large or out of order
ends the connection. Encodings that would change how later messages are read are never let be negotiated.
"""

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from service.desktop.rfb_input import InputLog
from service.domain.errors import Fault
from service.domain.limits import KIB

MAX_CUT_TEXT = 256 * KIB
"""Most bytes of a clipboard that a viewer sends."""
MAX_ENCODINGS = 256
MAX_FENCE = 64
VERSIONS = frozenset({b"RFB 003.003\n", b"RFB 003.007\n", b"RFB 003.008\n"})
_NO_SECURITY = 1
_SHARED = b"\x01"
# Raw, CopyRect, RRE, Hextile, Zlib, Tight, ZRLE, JPEG; sizes, cursor, name, last rectangle, LEDs; fences and continuous
# updates; keys by code; clipboard. Not among them: extended mouse buttons (-316), which make PointerEvent longer.
_ENCODINGS = frozenset(
    [
        *(0, 1, 2, 5, 6, 7, 16, 21),
        *(-223, -224, -239, -240, -261, -307, -308, -312, -313, -314, -258, 0x574D5664, -0x3F5E1A32),
        *(*range(-32, -22), *range(-256, -246), *range(-512, -411)),
    ]
)


class RfbViolation(Fault):
    """The client does not keep to the protocol, or goes beyond its bounds."""


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    head: int
    """Bytes after which the message's length is known."""
    size: Callable[[bytes], int]
    passes: bool = False
    """In view mode too."""
    controls: bool = False
    """In control mode."""


def _fixed(size: int) -> Callable[[bytes], int]:
    return lambda _: size


def _encodings(head: bytes) -> int:
    count = int.from_bytes(head[2:4], "big")
    if count > MAX_ENCODINGS:
        raise RfbViolation("too_many_encodings", f"{count} encodings")
    return 4 + 4 * count


def _cut_text(head: bytes) -> int:
    size = abs(int.from_bytes(head[4:8], "big", signed=True))
    if size > MAX_CUT_TEXT:
        raise RfbViolation("cut_text_too_large", f"a clipboard of {size} bytes")
    return 8 + size


def _fence(head: bytes) -> int:
    if head[8] > MAX_FENCE:
        raise RfbViolation("fence_too_large", f"a fence of {head[8]} bytes")
    return 9 + head[8]


def _extended_key(head: bytes) -> int:
    if head[1] != 0:
        raise RfbViolation("unknown_message", f"message 255/{head[1]}")
    return 12


_KINDS = {
    0: _Kind("pixel_format", 1, _fixed(20), passes=True),
    2: _Kind("encodings", 4, _encodings, passes=True),
    3: _Kind("update_request", 1, _fixed(10), passes=True),
    4: _Kind("key", 1, _fixed(8), controls=True),
    5: _Kind("pointer", 1, _fixed(6), controls=True),
    6: _Kind("cut_text", 8, _cut_text, controls=True),
    150: _Kind("continuous_updates", 1, _fixed(10), passes=True),
    248: _Kind("fence", 9, _fence, passes=True),
    # The screen's size and power are nobody's to change from here.
    250: _Kind("xvp", 1, _fixed(4)),
    251: _Kind("desktop_size", 7, lambda head: 8 + 16 * head[6]),
    255: _Kind("extended_key", 2, _extended_key, controls=True),
}


class RfbFilter:
    """One viewer's bytes. ``control``: what is typed, pointed at and pasted passes too, and is noted in ``inputs``."""

    def __init__(self, control: bool) -> None:
        self.control = control
        self.inputs = InputLog()
        self.dropped: Counter[str] = Counter()
        """Names of messages that did not pass to how many there were."""
        self._held = bytearray()
        self._next: Callable[[], bytes | None] = self._version
        self._failed: RfbViolation | None = None

    def feed(self, data: bytes) -> bytes:
        """Return what may pass of what is complete. Raises RfbViolation, and again ever after."""
        if self._failed is not None:
            raise self._failed
        self._held += data
        passed = bytearray()
        try:
            while (piece := self._next()) is not None:
                passed += piece
        except RfbViolation as error:
            self._failed = error
            raise
        return bytes(passed)

    def _take(self, size: int) -> bytes | None:
        if len(self._held) < size:
            return None
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _version(self) -> bytes | None:
        version = self._take(12)
        if version is None:
            return None
        if version not in VERSIONS:
            raise RfbViolation("unknown_version", repr(version))
        # In 3.3 the server alone says what security there is.
        self._next = self._shared if version == b"RFB 003.003\n" else self._security
        return version

    def _security(self) -> bytes | None:
        choice = self._take(1)
        if choice is not None and choice[0] != _NO_SECURITY:
            raise RfbViolation("unknown_security", f"security type {choice[0]}")
        self._next = self._security if choice is None else self._shared
        return choice

    def _shared(self) -> bytes | None:
        if self._take(1) is None:
            return None
        self._next = self._message
        return _SHARED  # nobody throws others out

    def _message(self) -> bytes | None:
        if not self._held:
            return None
        kind = _KINDS.get(self._held[0])
        if kind is None:
            raise RfbViolation("unknown_message", f"message {self._held[0]}")
        if len(self._held) < kind.head:
            return None
        message = self._take(kind.size(bytes(self._held[: kind.head])))
        return None if message is None else self._judged(kind, message)

    def _judged(self, kind: _Kind, message: bytes) -> bytes:
        if kind.name == "encodings":
            return _known_encodings(message)
        if kind.passes:
            return message
        if not (self.control and kind.controls):
            self.dropped[kind.name] += 1
            return b""
        self.inputs.note(message)
        return message


def _known_encodings(message: bytes) -> bytes:
    count = (len(message) - 4) // 4
    kept = [e for e in struct.unpack_from(f">{count}i", message, 4) if e in _ENCODINGS]
    return struct.pack(f">BBH{len(kept)}i", 2, 0, len(kept), *kept)

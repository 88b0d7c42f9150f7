"""What a person typed and pointed at, from RFB messages, as compact records for the run's log."""

import struct
from dataclasses import dataclass, field
from typing import Any

from service.domain.limits import KIB

MOST_RECORDS = 400
"""Of one batch; further ones are counted only."""
MOST_TEXT = 4 * KIB
"""Most characters of a pasted text that are kept."""
_KEY, _POINTER, _CUT_TEXT, _EXTENDED_KEY = 4, 5, 6, 255


@dataclass(slots=True)
class InputLog:
    """Records since the last :meth:`take`. Movements without a change of buttons are kept as their last point."""

    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    left_out: int = 0
    _buttons: int = 0

    def note(self, message: bytes) -> None:
        """Take in a complete KeyEvent, PointerEvent, ClientCutText or extended key event."""
        kind = message[0]
        if kind == _KEY:
            self._add({"key": struct.unpack(">I", message[4:8])[0], "down": message[1] != 0})
        elif kind == _EXTENDED_KEY:
            down, key = struct.unpack(">HI", message[2:8])
            self._add({"key": key, "down": down != 0})
        elif kind == _POINTER:
            self._point(*struct.unpack(">BHH", message[1:6]))
        elif kind == _CUT_TEXT:
            self._add(_pasted(message))

    def take(self) -> dict[str, Any] | None:
        """Return the payload of an event, or None if nothing came; then begin anew."""
        if not self.records:
            return None
        payload = {"records": self.records, "left_out": self.left_out}
        self.records, self.left_out = [], 0
        return payload

    def _point(self, buttons: int, x: int, y: int) -> None:
        record = {"x": x, "y": y, "buttons": buttons}
        last = self.records[-1] if self.records else {}
        if buttons == self._buttons and last.get("buttons") == buttons:
            self.records[-1] = record
            return
        self._buttons = buttons
        self._add(record)

    def _add(self, record: dict[str, Any]) -> None:
        if len(self.records) < MOST_RECORDS:
            self.records.append(record)
        else:
            self.left_out += 1


def _pasted(message: bytes) -> dict[str, Any]:
    size = struct.unpack(">i", message[4:8])[0]
    if size < 0:  # the extended clipboard: compressed, and nothing here unpacks it
        return {"clipboard_bytes": -size}
    text = message[8:].decode("latin-1")
    return {"text": text[:MOST_TEXT], "characters": len(text)}

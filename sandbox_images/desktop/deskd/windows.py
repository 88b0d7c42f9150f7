"""Windows as the window manager lists them. Titles are whatever programs say: bounded, and never more than text."""

# pyright: reportMissingModuleSource=false
import time
from collections.abc import Sequence
from typing import Any, Final

from pause import Pause
from Xlib import X, Xatom, error
from Xlib.display import Display
from Xlib.protocol import event
from Xlib.xobject.drawable import Window
from xlink import events, root_of

MOST_WINDOWS, MOST_TITLE, MOST_PROGRAM = 64, 512, 100
Box = tuple[int, int, int, int]
PONG_S, _POLL_S = 3.0, 0.003
_BY_PAGER: Final = 2
_LOST = (error.BadWindow, error.BadDrawable, error.BadMatch)


class Windows:
    def __init__(self, link: Display) -> None:
        self._link = link
        self._root = root_of(link)

    def active(self) -> int:
        """Return the number of the window that has the keyboard, 0 where none has."""
        found = self._numbers("_NET_ACTIVE_WINDOW", 1)
        return found[0] if found else 0

    def active_title(self) -> str:
        number = self.active()
        return self._title(self._window(number)) if number else ""

    def numbers(self) -> Sequence[int]:
        return self._numbers("_NET_CLIENT_LIST", MOST_WINDOWS)

    def all(self) -> list[dict[str, Any]]:
        active = self.active()
        found = [self._described(number, active) for number in self.numbers()]
        return [window for window in found if window]

    def of_program(self, program: str) -> int | None:
        """Return the newest window of a program, by its class."""
        for number in reversed(self.numbers()):
            if program in self._program(self._window(number)).lower():
                return number
        return None

    def bring(self, number: int) -> None:
        """Ask the window manager to bring a window to the front."""
        atom = self._link.get_atom("_NET_ACTIVE_WINDOW")
        data = (32, [_BY_PAGER, X.CurrentTime, 0, 0, 0])
        message = event.ClientMessage(window=self._window(number), client_type=atom, data=data)
        self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        self._link.sync()

    def caught_up(self, pause: Pause, within_s: float = PONG_S) -> bool:
        """Wait until the active program has taken the input that came before; False where it does not say so in time."""
        number = self.active()
        return bool(number) and self._answers_ping(number) and self._pong(number, pause, within_s)

    def serves(self, pause: Pause, within_s: float) -> bool:
        """Whether the active program takes input in that time; one that does not know the question counts as one."""
        number = self.active()
        return not number or not self._answers_ping(number) or self._pong(number, pause, within_s)

    def _answers_ping(self, number: int) -> bool:
        try:
            known = self._window(number).get_property(self._link.get_atom("WM_PROTOCOLS"), Xatom.ATOM, 0, 16)
        except _LOST:
            return False
        return known is not None and self._link.get_atom("_NET_WM_PING") in known.value

    def _pong(self, number: int, pause: Pause, within_s: float) -> bool:
        # The answer goes to the root window; we hear of it while we ask to.
        self._root.change_attributes(event_mask=X.SubstructureNotifyMask)
        try:
            self._ping(number)
            until = time.monotonic() + within_s
            while time.monotonic() < until:
                if any(self._is_pong(seen, number) for seen in events(self._link)):
                    return True
                pause.wait(_POLL_S)
        finally:
            self._root.change_attributes(event_mask=0)
        return False

    def _ping(self, number: int) -> None:
        data = (32, [self._link.get_atom("_NET_WM_PING"), X.CurrentTime, number, 0, 0])
        protocols = self._link.get_atom("WM_PROTOCOLS")
        window = self._window(number)
        window.send_event(event.ClientMessage(window=window, client_type=protocols, data=data), event_mask=0)
        self._link.flush()

    def _is_pong(self, seen: Any, number: int) -> bool:
        if seen.type & 0x7F != X.ClientMessage or seen.window != self._root:
            return False
        return list(seen.data[1][:3:2]) == [self._link.get_atom("_NET_WM_PING"), number]

    def _described(self, number: int, active: int) -> dict[str, Any] | None:
        window = self._window(number)
        try:
            size = window.get_geometry()
            place = self._root.translate_coords(window.id, 0, 0)
        except _LOST:
            return None
        return {
            "title": self._title(window),
            "program": self._program(window),
            "x": int(place.x),
            "y": int(place.y),
            "width": int(size.width),
            "height": int(size.height),
            "active": number == active,
        }

    def _window(self, number: int) -> Window:
        return self._link.create_resource_object("window", number)

    def _title(self, window: Window) -> str:
        title = self._bytes(window, "_NET_WM_NAME") or self._bytes(window, "WM_NAME")
        return _text(title)[:MOST_TITLE]

    def _program(self, window: Window) -> str:
        """Return the class: the second of two texts."""
        return _text(self._bytes(window, "WM_CLASS").rstrip(b"\0").rpartition(b"\0")[2])[:MOST_PROGRAM]

    def _bytes(self, window: Window, name: str) -> bytes:
        try:
            found = window.get_property(self._link.get_atom(name), X.AnyPropertyType, 0, MOST_TITLE)
        except _LOST:
            return b""
        return bytes(found.value) if found is not None and found.format == 8 else b""

    def _numbers(self, name: str, most: int) -> Sequence[int]:
        found = self._root.get_property(self._link.get_atom(name), Xatom.WINDOW, 0, most)
        return [int(number) for number in found.value] if found is not None and found.format == 32 else []


def _text(value: bytes) -> str:
    """Control characters could move a reader's terminal."""
    return "".join(one if one.isprintable() else " " for one in value.decode(errors="replace"))

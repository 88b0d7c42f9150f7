"""What the session asks the X server: is there a window manager, is a program's window there; and a text on the wall."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from Xlib import X, Xatom, error
from Xlib.display import Display

_WALL, _INK = 0x3B4252, 0xFFFFFF
_LINE_PX = 20
_ICONIC = 3
GONE = (error.DisplayError, error.ConnectionClosedError, OSError)
"""What a server that ends, or is none, makes of any question."""


class Screen:
    def __init__(self, display: Any) -> None:
        self._display = display
        self._root = display.screen().root

    def managed(self) -> bool:
        """Tell whether a window manager is there and has said all that a panel asks for.

        Its own window must answer: the name alone may be that of one which is gone.
        """
        window = self._first(self._root, "_NET_SUPPORTING_WM_CHECK", Xatom.WINDOW)
        if window is None or self._first(self._root, "_NET_CURRENT_DESKTOP", Xatom.CARDINAL) is None:
            return False
        own = self._display.create_resource_object("window", window)
        return self._first(own, "_NET_SUPPORTING_WM_CHECK", Xatom.WINDOW) == window

    def shows(self, program: str) -> bool:
        """Tell whether a window of ``program`` is on the screen, by its class."""
        return any(program in self._class_of(window) for window in self._clients())

    def restore(self, program: str) -> None:
        """Show the windows of ``program`` that were made icons."""
        for window in self._clients():
            if program in self._class_of(window) and self._first(window, "WM_STATE", X.AnyPropertyType) == _ICONIC:
                window.map()
        self._display.sync()

    def paint(self, lines: Sequence[str] = ()) -> None:
        """Give the wall its colour and these lines of text."""
        width, height = self._root.get_geometry().width, self._root.get_geometry().height
        wall = self._root.create_pixmap(width, height, self._display.screen().root_depth)
        brush = self._root.create_gc(foreground=_WALL, font=self._display.open_font("fixed"))
        wall.fill_rectangle(brush, 0, 0, width, height)
        brush.change(foreground=_INK, background=_WALL)
        for number, line in enumerate(lines):
            wall.image_text(brush, 40, 60 + _LINE_PX * number, line.encode("latin-1", "replace"))
        self._root.change_attributes(background_pixmap=wall)
        self._root.clear_area()
        wall.free()
        self._display.sync()

    def _clients(self) -> list[Any]:
        listed = self._root.get_full_property(self._display.get_atom("_NET_CLIENT_LIST"), Xatom.WINDOW)
        return [self._display.create_resource_object("window", number) for number in (listed.value if listed else ())]

    def _class_of(self, window: Any) -> str:
        try:
            names = window.get_wm_class()
        except (error.BadWindow, error.BadAtom):
            return ""
        return " ".join(names or ()).lower()

    def _first(self, window: Any, name: str, kind: int) -> int | None:
        try:
            found = window.get_full_property(self._display.get_atom(name), kind)
        except error.BadWindow:
            return None
        return int(found.value[0]) if found is not None and len(found.value) else None


@contextmanager
def opened(name: str) -> Generator[Screen]:
    """Give the screen of a display that answers. Raises one of :data:`GONE`, as every question may."""
    display = Display(name)
    try:
        yield Screen(display)
    finally:
        display.close()

"""From an action in the host's words to what is done on the screen."""

# pyright: reportMissingModuleSource=false
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import encode
import fields
import screen
from album import Album, Wanted
from browser import Browser
from clipboard import Owner, Reader
from faults import Failed
from keyboards import Keyboard
from pause import Pause
from pointer import Pointer
from release import BUTTONS, Hands
from windows import Windows
from Xlib.display import Display

Action = Mapping[str, Any]
MOST_TEXT, MOST_CLIPBOARD, MOST_WAIT_S = 64 << 10, 1 << 20, 100.0
MOST_SAID: Final = 700 << 10
"""What is left of an answer's head when every window is listed."""
MOST_PATH, MOST_KEYS, MOST_MODIFIERS, MOST_REPEAT, MOST_TURNS = 256, 16, 8, 100, 100
_COPIES_S: Final = 0.5
_NO_MODIFIERS: Final = {"screenshot", "zoom", "wait", "cursor_position", "windows", "clipboard_read", "release_all"}


@dataclass
class Told:
    """What an action has to say."""

    text: str = ""
    image: int | None = None
    windows: list[dict[str, Any]] | None = None


@dataclass
class Desk:
    """What actions act on."""

    link: Display
    pause: Pause
    hands: Hands
    keyboard: Keyboard
    pointer: Pointer
    windows: Windows
    browser: Browser
    reader: Reader
    owner: Owner


@dataclass
class Doer:
    """Does one batch's actions; ``wanted`` is how their pictures are wanted."""

    desk: Desk
    album: Album
    wanted: Wanted
    size: tuple[int, int] = field(init=False)
    said: int = 0
    """Bytes of text in the answer, as JSON."""

    def __post_init__(self) -> None:
        self.size = screen.size_of(self.desk.link)

    def do(self, action: Action) -> Told:
        """Raises Failed."""
        kind = action.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is None:
            raise Failed("bad_action", f"no action is called {str(kind)[:40]!r}")
        modifiers = fields.names(action, "modifiers", MOST_MODIFIERS)
        if not modifiers or kind in _NO_MODIFIERS:
            return handler(self, action) or Told()
        with self.desk.hands.holding(self.desk.keyboard.chord(modifiers)):
            self.desk.link.flush()
            return handler(self, action) or Told()

    def screenshot(self, _: Action) -> Told:
        return Told(image=self.album.take("action", self.wanted))

    def zoom(self, action: Action) -> Told:
        region = fields.part(action, "region") or {}
        x0, y0, x1, y1 = (fields.whole(region, name, 0, fields.MOST_SIDE) for name in ("x0", "y0", "x1", "y1"))
        if not (x0 < x1 <= self.size[0] and y0 < y1 <= self.size[1]):
            raise Failed("out_of_bounds", f"the region is not on the screen of {self.size[0]}x{self.size[1]}")
        size = fields.size(action, "size") or encode.fitting((x1 - x0, y1 - y0), self.size)
        return Told(image=self.album.take("action", self.wanted, (x0, y0, x1, y1), size))

    def click(self, action: Action) -> None:
        self.desk.pointer.click(self._place(action), _button(action), fields.whole(action, "count", 1, 3, 1))

    def move(self, action: Action) -> None:
        place = self._place(action)
        if place is None:
            raise Failed("bad_action", "x and y are lacking")
        self.desk.pointer.move(place)

    def mouse_down(self, action: Action) -> None:
        self.desk.pointer.press(self._place(action), _button(action))

    def mouse_up(self, action: Action) -> None:
        self.desk.pointer.let_go(self._place(action), _button(action))

    def drag(self, action: Action) -> None:
        path = action.get("path")
        if not isinstance(path, list) or not 0 < len(path) <= MOST_PATH:  # pyright: ignore[reportUnknownArgumentType]
            raise Failed("bad_action", f"a path has 1 to {MOST_PATH} points")
        places = [self._place(point) if isinstance(point, dict) else None for point in path]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            raise Failed("bad_action", "a point has x and y")
        self.desk.pointer.drag(found, _button(action))

    def scroll(self, action: Action) -> None:
        turns = [fields.whole(action, name, -MOST_TURNS, MOST_TURNS, 0) for name in ("dx", "dy")]
        self.desk.pointer.scroll(self._place(action), turns[0], turns[1])

    def key(self, action: Action) -> None:
        self.desk.keyboard.press(_keys(action), fields.whole(action, "repeat", 1, MOST_REPEAT, 1))

    def key_down(self, action: Action) -> None:
        self.desk.keyboard.down(_keys(action))

    def key_up(self, action: Action) -> None:
        self.desk.keyboard.up(_keys(action))

    def hold_key(self, action: Action) -> None:
        self.desk.keyboard.hold(_keys(action), fields.seconds(action, "seconds", MOST_WAIT_S))

    def type(self, action: Action) -> None:
        self.desk.keyboard.type(fields.text(action, "text", MOST_TEXT))

    def wait(self, action: Action) -> None:
        self.desk.pause.wait(fields.seconds(action, "seconds", MOST_WAIT_S))

    def cursor_position(self, _: Action) -> Told:
        x, y = self.desk.pointer.at()
        return Told(text=f"{x},{y}")

    def navigate(self, action: Action) -> None:
        self.desk.browser.navigate(fields.text(action, "text", MOST_TEXT))

    def clipboard_read(self, _: Action) -> Told:
        # What was copied just now is there when the program has seen the keys that copy.
        self.desk.windows.caught_up(self.desk.pause, _COPIES_S)
        text = self.desk.reader.read()
        self.said += len(json.dumps(text, ensure_ascii=False).encode(errors="replace"))
        if self.said > MOST_SAID:
            raise Failed("too_large", f"the texts of one answer have at most {MOST_SAID} bytes together")
        return Told(text=text)

    def clipboard_write(self, action: Action) -> None:
        self.desk.owner.write(fields.text(action, "text", MOST_CLIPBOARD))

    def list_windows(self, _: Action) -> Told:
        return Told(windows=self.desk.windows.all())

    def resize(self, action: Action) -> None:
        size = fields.size(action, "size")
        if size is None:
            raise Failed("bad_action", "size is lacking")
        screen.resize(self.desk.link, size, self.desk.pause)
        self.size = screen.size_of(self.desk.link)

    def release_all(self, _: Action) -> None:
        self.desk.hands.release_all()

    def _place(self, action: Action) -> tuple[int, int] | None:
        return fields.point(action, self.size)


def _button(action: Action) -> str:
    button = action.get("button", "left")
    if not isinstance(button, str) or button not in BUTTONS:
        raise Failed("bad_action", f"a button is one of {', '.join(BUTTONS)}")
    return button


def _keys(action: Action) -> list[str]:
    keys = fields.names(action, "keys", MOST_KEYS)
    if not keys:
        raise Failed("bad_action", "keys are lacking")
    return keys


_HANDLERS: Final[dict[str, Callable[[Doer, Action], Told | None]]] = {
    "screenshot": Doer.screenshot,
    "zoom": Doer.zoom,
    "click": Doer.click,
    "move": Doer.move,
    "mouse_down": Doer.mouse_down,
    "mouse_up": Doer.mouse_up,
    "drag": Doer.drag,
    "scroll": Doer.scroll,
    "key": Doer.key,
    "key_down": Doer.key_down,
    "key_up": Doer.key_up,
    "hold_key": Doer.hold_key,
    "type": Doer.type,
    "wait": Doer.wait,
    "cursor_position": Doer.cursor_position,
    "navigate": Doer.navigate,
    "clipboard_read": Doer.clipboard_read,
    "clipboard_write": Doer.clipboard_write,
    "windows": Doer.list_windows,
    "resize": Doer.resize,
    "release_all": Doer.release_all,
}

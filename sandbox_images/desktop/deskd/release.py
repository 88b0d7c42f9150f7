"""Keys and buttons that are down: all input goes through here, so that all of it can be let go."""

# pyright: reportMissingModuleSource=false
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from Xlib import X
from Xlib.display import Display
from Xlib.ext import xtest
from xlink import root_of

BUTTONS = {"left": 1, "middle": 2, "right": 3, "back": 8, "forward": 9}
_MASKS = {1: X.Button1Mask, 2: X.Button2Mask, 3: X.Button3Mask}


class Hands:
    def __init__(self, link: Display) -> None:
        self._link = link
        self._keys: dict[int, str] = {}
        self._buttons: dict[int, str] = {}

    @property
    def held(self) -> list[str]:
        return [*self._keys.values(), *self._buttons.values()]

    def press(self, code: int, name: str) -> None:
        xtest.fake_input(self._link, X.KeyPress, code)
        self._keys[code] = name

    def let_go(self, code: int) -> None:
        self._keys.pop(code, None)
        xtest.fake_input(self._link, X.KeyRelease, code)

    def press_button(self, button: int, name: str) -> None:
        xtest.fake_input(self._link, X.ButtonPress, button)
        self._buttons[button] = name

    def let_go_button(self, button: int) -> None:
        self._buttons.pop(button, None)
        xtest.fake_input(self._link, X.ButtonRelease, button)

    @contextmanager
    def holding(self, keys: Sequence[tuple[int, str]]) -> Generator[None]:
        """Hold keys meanwhile; one that was down before stays down."""
        pressed: list[int] = []
        try:
            for code, name in keys:
                if code not in self._keys:
                    self.press(code, name)
                    pressed.append(code)
            yield
        finally:
            for code in reversed(pressed):
                self.let_go(code)
            self._link.flush()

    @contextmanager
    def holding_button(self, button: int, name: str) -> Generator[None]:
        try:
            self.press_button(button, name)
            yield
        finally:
            self.let_go_button(button)
            self._link.flush()

    def release_all(self) -> None:
        """Let go of what we hold and of what the server says is down: an earlier helper may have died in the middle."""
        down = self._link.query_keymap()
        for code in {*self._keys, *(8 * i + bit for i, byte in enumerate(down) for bit in range(8) if byte >> bit & 1)}:
            self.let_go(code)
        mask = root_of(self._link).query_pointer().mask
        for button in {*self._buttons, *(button for button, bit in _MASKS.items() if mask & bit)}:
            self.let_go_button(button)
        self._link.sync()

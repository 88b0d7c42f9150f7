"""The pointer: moves, clicks, drags and the wheel."""

# pyright: reportMissingModuleSource=false
import itertools
import math
import time
from collections.abc import Sequence
from typing import Final

from faults import Failed
from pause import Pause
from release import BUTTONS, Hands
from Xlib import X
from Xlib.display import Display
from Xlib.ext import xtest
from xlink import root_of

Place = tuple[int, int]
APART_S: Final = 0.55
"""Between equal clicks of one batch: programs take two within 0.5 s for a double click."""
NEAR: Final = 8
_HOVER_S, _CLICK_S, _AGAIN_S, _STEP_S, _GRIP_S, _WHEEL_S = 0.008, 0.006, 0.04, 0.008, 0.04, 0.006
STEPS: Final = 12


class Pointer:
    def __init__(self, link: Display, hands: Hands, pause: Pause) -> None:
        self._link, self._hands, self._pause = link, hands, pause
        self._last: tuple[float, Place, str] | None = None

    def begin(self) -> None:
        """A new batch."""
        self._last = None

    def at(self) -> Place:
        place = root_of(self._link).query_pointer()
        return int(place.root_x), int(place.root_y)

    def move(self, place: Place | None) -> Place:
        """Return where the pointer is then. Raises Failed ``input_blocked``: a program keeps it elsewhere."""
        if place is None:
            return self.at()
        for _ in range(3):
            self._go(place)
            if self.at() == place:
                return place
            self._pause.wait(0.05)
        raise Failed("input_blocked", f"a program holds the pointer at {self.at()}")

    def click(self, place: Place | None, button: str, count: int) -> None:
        place = self.move(place)
        self._keep_apart(place, button)
        self._pause.wait(_HOVER_S)
        for number in range(count):
            if number:
                self._pause.wait(_AGAIN_S)
            with self._hands.holding_button(BUTTONS[button], button):
                self._link.flush()
                self._pause.wait(_CLICK_S)
        self._link.sync()
        self._last = time.monotonic(), place, button

    def press(self, place: Place | None, button: str) -> None:
        self.move(place)
        self._hands.press_button(BUTTONS[button], button)
        self._link.sync()

    def let_go(self, place: Place | None, button: str) -> None:
        self.move(place)
        self._hands.let_go_button(BUTTONS[button])
        self._link.sync()

    def drag(self, path: Sequence[Place], button: str) -> None:
        path = path if len(path) > 1 else [self.at(), *path]
        self.move(path[0])
        self._pause.wait(_HOVER_S)
        with self._hands.holding_button(BUTTONS[button], button):
            self._link.flush()
            self._pause.wait(_GRIP_S)
            for place in steps(path):
                self._go(place)
                self._link.flush()
                self._pause.wait(_STEP_S)
            self._pause.wait(_GRIP_S)
        self._link.sync()

    def scroll(self, place: Place | None, dx: int, dy: int) -> None:
        self.move(place)
        self._pause.wait(_HOVER_S)
        for button, turns in ((5 if dy > 0 else 4, abs(dy)), (7 if dx > 0 else 6, abs(dx))):
            for _ in range(turns):
                with self._hands.holding_button(button, "wheel"):
                    pass
                self._pause.wait(_WHEEL_S)
        self._link.sync()

    def _go(self, place: Place) -> None:
        xtest.fake_input(self._link, X.MotionNotify, x=place[0], y=place[1])

    def _keep_apart(self, place: Place, button: str) -> None:
        if self._last is not None:
            when, before, which = self._last
            if which == button and max(abs(place[0] - before[0]), abs(place[1] - before[1])) <= NEAR:
                self._pause.wait(max(0.0, when + APART_S - time.monotonic()))


def steps(path: Sequence[Place]) -> list[Place]:
    """Return at least ``STEPS`` points along a path of two or more, its corners and its end among them."""
    each = math.ceil(STEPS / (len(path) - 1))
    found = list[Place]()
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        found += [(x0 + round((x1 - x0) * n / each), y0 + round((y1 - y0) * n / each)) for n in range(1, each + 1)]
    return found

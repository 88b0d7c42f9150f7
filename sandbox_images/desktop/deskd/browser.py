"""Opening an address in the browser, as a person does: bring it to the front, its address line, type, Return."""

import subprocess
import time
from typing import Final

from faults import Failed
from keyboards import Keyboard
from pause import Pause
from windows import Windows

_PROGRAM: Final = "chromium"
START_S, FRONT_S = 20.0, 3.0
_POLL_S, _SERVED_S, _LINE_S = 0.05, 0.5, 0.15
MOST_ADDRESS: Final = 8000


class Browser:
    def __init__(self, windows: Windows, keyboard: Keyboard, pause: Pause, *, kept: bool) -> None:
        """``kept``: somebody else starts it, and starts it again."""
        self._windows, self._keyboard, self._pause, self._kept = windows, keyboard, pause, kept

    def navigate(self, address: str) -> None:
        """Raises Failed ``no_browser``."""
        if any(ord(one) < 0x20 for one in address) or len(address) > MOST_ADDRESS:
            raise Failed("bad_action", f"an address is one line of at most {MOST_ADDRESS} characters")
        self._front()
        if address:
            self._keyboard.press(["ctrl", "l"])
            self._pause.wait(_LINE_S)
            self._keyboard.type(address)
            # What the line completed by itself is selected behind the address: away with it.
            self._keyboard.press(["Delete"])
            self._keyboard.press(["Return"])

    def _front(self) -> None:
        number = self._windows.of_program(_PROGRAM)
        if number is None:
            number = self._started()
            # A window is on the screen before it takes keys.
            self._pause.wait(_SERVED_S)
        until = time.monotonic() + FRONT_S
        while self._windows.active() != number:
            if time.monotonic() > until:
                raise Failed("no_browser", "the browser does not come to the front")
            self._windows.bring(number)
            self._pause.wait(_POLL_S)

    def _started(self) -> int:
        if not self._kept:
            self._start()
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            number = self._windows.of_program(_PROGRAM)
            if number is not None:
                return number
            self._pause.wait(_POLL_S)
        raise Failed("no_browser", f"no window of a browser after {START_S:.0f} s")

    def _start(self) -> None:
        try:
            subprocess.Popen(
                [_PROGRAM, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as fault:
            raise Failed("no_browser", "there is no browser") from fault

"""Runs in the sandbox: a window (100,400 to 700,700) that changes as its argument says.

``carets``: three carets, a block and a frame blink, each in its own time. ``growing``: a bar that grows. ``late``: turns
red after a second of small changes. ``noise``: no change, but the whole screen in random colours.
"""

# pyright: reportMissingModuleSource=false
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from Xlib import X
from Xlib.display import Display

STRIP = 40
_BLINKERS = (
    (0.53, (20, 20, 1, 17)),
    (0.61, (200, 40, 2, 20)),
    (0.47, (300, 200, 3, 30)),
    (0.4, (400, 100, 9, 18)),
    (0.3, (100, 100, 120, 2)),
)


def noise() -> None:
    """Cover the whole screen with what cannot be made small."""
    display = Display()
    screen = display.screen()
    width, height = screen.width_in_pixels, screen.height_in_pixels
    window = screen.root.create_window(0, 0, width, height, 0, screen.root_depth, override_redirect=True)
    window.map()
    brush = window.create_gc()
    for top in range(0, height, STRIP):
        window.put_image(brush, 0, top, width, STRIP, X.ZPixmap, screen.root_depth, 0, os.urandom(width * STRIP * 4))
    display.sync()
    Path("/tmp/noise").touch()
    time.sleep(600)


def main(mode: str) -> None:
    display = Display()
    screen = display.screen()
    window = screen.root.create_window(
        100, 400, 600, 300, 0, screen.root_depth, background_pixel=screen.white_pixel, override_redirect=True
    )
    window.map()
    display.sync()
    black = window.create_gc(foreground=0)
    white = window.create_gc(foreground=screen.white_pixel)
    red = window.create_gc(foreground=0xFF0000)
    began = time.monotonic()
    painted: dict[str, Callable[[float], Any]] = {
        "carets": lambda now: [
            window.fill_rectangle(black if int(now / period) % 2 else white, *box) for period, box in _BLINKERS
        ],
        "growing": lambda now: window.fill_rectangle(black, 0, 50, min(600, int(now * 80)), 30),
        "late": lambda now: window.fill_rectangle(
            *((black, 10, 10, int(now * 100) + 20, 20) if now < 2 else (red, 0, 0, 600, 300))
        ),
    }
    while True:
        painted[mode](time.monotonic() - began)
        display.sync()
        time.sleep(0.02)


if __name__ == "__main__":
    noise() if sys.argv[1] == "noise" else main(sys.argv[1])

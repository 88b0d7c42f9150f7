"""The screen's size, and changing it while everything goes on."""

# pyright: reportMissingModuleSource=false
from typing import Any, Final

from faults import Failed
from pause import Pause
from Xlib import X, error
from Xlib.display import Display
from Xlib.ext import randr
from Xlib.xobject.drawable import Window
from xlink import root_of

LEAST_SIDE, MOST_SIDE = 320, 4096
Size = tuple[int, int]
_TRIES: Final = 40
_HZ: Final = 60


def size_of(link: Display) -> Size:
    geometry = root_of(link).get_geometry()
    return int(geometry.width), int(geometry.height)


def resize(link: Display, size: Size, pause: Pause) -> None:
    """Give the screen this size. Raises Failed."""
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in size):
        raise Failed("out_of_bounds", f"a side of the screen has {LEAST_SIDE} to {MOST_SIDE} pixels")
    if size_of(link) == size:
        return
    try:
        _set(link, root_of(link), size)
    except (error.BadValue, error.BadMatch, error.BadName) as fault:
        raise Failed("bad_action", f"the screen does not take the size {size[0]}x{size[1]}") from fault
    for _ in range(_TRIES):
        if size_of(link) == size:
            return
        pause.wait(0.025)
    raise Failed("bad_action", f"the screen stays at {size_of(link)}")


def _set(link: Display, root: Window, size: Size) -> None:
    resources = randr.get_screen_resources(root)
    output, crtc = resources.outputs[0], resources.crtcs[0]
    mode = _mode(link, root, resources, size, output)
    old = size_of(link)
    # The frame must hold the part that is shown, before the change and after it.
    both = max(old[0], size[0]), max(old[1], size[1])
    if both != old:
        _frame(root, both)
    randr.set_crtc_config(link, crtc, resources.config_timestamp, 0, 0, mode, randr.Rotate_0, [output], X.CurrentTime)
    if both != size:
        _frame(root, size)
    link.sync()


def _frame(root: Window, size: Size) -> None:
    # In millimetres at 96 dots an inch.
    randr.set_screen_size(root, size[0], size[1], size[0] * 254 // 960, size[1] * 254 // 960)


def _mode(link: Display, root: Window, resources: Any, size: Size, output: int) -> int:
    for mode in resources.modes:
        if (mode.width, mode.height) == size:
            return int(mode.id)
    name = f"{size[0]}x{size[1]}"
    timing = (
        0,
        size[0],
        size[1],
        size[0] * size[1] * _HZ,
        size[0],
        size[0],
        size[0],
        0,
        size[1],
        size[1],
        size[1],
        len(name),
        0,
    )
    made = randr.create_mode(root, timing, name)
    randr.add_output_mode(link, output, made.mode)
    return int(made.mode)

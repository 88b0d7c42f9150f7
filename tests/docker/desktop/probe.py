"""Runs in the sandbox: a window (100,100 to 700,500) that writes down what it is told, and misbehaves as it is asked to.

``grab``: takes keyboard and pointer; ``confine``: keeps the pointer in the window. ``server``: takes the whole server for itself. ``still``: neither.
"""

# pyright: reportMissingModuleSource=false
import json
import sys
from pathlib import Path
from typing import Any

from Xlib import X
from Xlib.display import Display
from Xlib.protocol import rq

LOG = "/tmp/probe.log"
BLUE = 0x2266CC
_KINDS = {
    X.ButtonPress: "down",
    X.ButtonRelease: "up",
    X.MotionNotify: "move",
    X.KeyPress: "key",
    X.KeyRelease: "key_up",
}
_MASK = (
    X.ButtonPressMask | X.ButtonReleaseMask | X.PointerMotionMask | X.KeyPressMask | X.KeyReleaseMask | X.ExposureMask
)


def noted(event: rq.Event, display: Display) -> dict[str, Any]:
    seen: dict[str, Any] = {"kind": _KINDS[event.type], "at": event.time, "state": event.state}
    if event.type in (X.KeyPress, X.KeyRelease):
        return seen | {"key": display.keycode_to_keysym(event.detail, 0)}
    return seen | {"x": event.root_x, "y": event.root_y, "button": event.detail}


def main(mode: str) -> None:
    display = Display()
    screen = display.screen()
    window = screen.root.create_window(
        100,
        100,
        600,
        400,
        0,
        screen.root_depth,
        event_mask=_MASK,
        background_pixel=BLUE,
        override_redirect=True,
    )
    window.set_wm_name("probe")
    window.set_wm_class("probe", "Probe")
    window.map()
    display.sync()
    with Path(LOG).open("a", buffering=1, encoding="utf-8") as log:
        while True:
            event = display.next_event()
            if event.type == X.Expose:
                take(display, window, mode)
                log.write(json.dumps({"kind": "shown"}) + "\n")
            elif event.type == X.MappingNotify:
                display.refresh_keyboard_mapping(event)
            elif event.type in _KINDS:
                log.write(json.dumps(noted(event, display)) + "\n")


def take(display: Display, window: Any, mode: str) -> None:
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    if mode in ("grab", "confine"):
        within = window if mode == "confine" else X.NONE
        mask = X.ButtonPressMask | X.ButtonReleaseMask | X.PointerMotionMask
        window.grab_pointer(False, mask, X.GrabModeAsync, X.GrabModeAsync, within, X.NONE, X.CurrentTime)
        window.grab_keyboard(False, X.GrabModeAsync, X.GrabModeAsync, X.CurrentTime)
    elif mode == "server":
        display.grab_server()
    display.sync()


if __name__ == "__main__":
    main(sys.argv[1])

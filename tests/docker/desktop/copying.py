"""Runs in the sandbox: owns the clipboard, and gives what its argument says.

``endless``: pieces for ever, of 64 KiB. ``giant``: 4 MiB at once. ``silent``: no answer. ``stalling``: promises pieces
and gives one. ``picture``: no text.
"""

# pyright: reportMissingModuleSource=false
import sys
from pathlib import Path
from typing import Any

from Xlib import X
from Xlib.display import Display
from Xlib.protocol import event

PIECE = b"x" * (64 << 10)
GIANT = 64


def main(mode: str) -> None:
    display = Display()
    window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    window.set_selection_owner(display.get_atom("CLIPBOARD"), X.CurrentTime)
    display.sync()
    Path("/tmp/copying").touch()
    receiver: Any = None
    name = pieces = 0
    while True:
        seen = display.next_event()
        if seen.type == X.SelectionRequest and mode != "silent":
            receiver, name = seen.requestor, seen.property
            begin(display, seen, mode)
        elif seen.type == X.PropertyNotify and seen.state == X.PropertyDelete and (mode == "endless" or not pieces):
            pieces += 1
            receiver.change_property(name, display.get_atom("UTF8_STRING"), 8, PIECE)
        display.flush()


def begin(display: Display, asked: Any, mode: str) -> None:
    if mode in ("endless", "stalling"):
        asked.requestor.change_attributes(event_mask=X.PropertyChangeMask)
        asked.requestor.change_property(asked.property, display.get_atom("INCR"), 32, [1 << 30])
    elif mode == "giant":
        kind = display.get_atom("UTF8_STRING")
        for _ in range(GIANT):
            asked.requestor.change_property(asked.property, kind, 8, PIECE, mode=X.PropModeAppend)
            display.flush()
    answer = event.SelectionNotify(
        time=asked.time,
        requestor=asked.requestor,
        selection=asked.selection,
        target=asked.target,
        property=X.NONE if mode == "picture" else asked.property,
    )
    asked.requestor.send_event(answer)


if __name__ == "__main__":
    main(sys.argv[1])

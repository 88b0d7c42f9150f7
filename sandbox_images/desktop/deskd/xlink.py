"""A connection to the X server on which nothing waits for ever."""

# pyright: reportMissingModuleSource=false
import select
from typing import Any, Final

from faults import ServerGone
from Xlib import X, error
from Xlib.display import Display
from Xlib.ext import xtest
from Xlib.protocol import display as protocol
from Xlib.protocol import rq
from Xlib.xobject.drawable import Window

DEADLINE_S: Final = 5.0
LOST = (error.ConnectionClosedError, error.DisplayError, OSError)
"""What python-xlib raises when the connection is gone."""

_REMAPPED: Final[set[int]] = set()
"""Connections that were told of another keyboard's map, whoever took that event."""


class _Deadlines:
    """Stands where python-xlib looks for ``select``: its waits have no end, and its flush spins on a full socket."""

    error = OSError
    gone = False

    def select(self, reading: Any, writing: Any, other: Any, timeout: float | None) -> Any:
        bounded = timeout is None or bool(writing)
        if self.gone:
            raise ServerGone("the X server does not answer")
        ready = select.select(reading, writing, other, DEADLINE_S if bounded else timeout)
        if bounded and not any(ready):
            _Deadlines.gone = True
            raise ServerGone(f"the X server did not answer for {DEADLINE_S:.0f} s")
        return ready


protocol.select = _Deadlines()  # pyright: ignore[reportAttributeAccessIssue]


def connect(name: str) -> Display:
    """Return a connection of the caller's own thread. Raises ServerGone."""
    try:
        link = Display(name)
        # A program that grabs the server would stop us otherwise.
        xtest.grab_control(link, impervious=True)
        link.sync()
    except LOST as fault:
        raise ServerGone(str(fault)) from fault
    return link


def root_of(link: Display) -> Window:
    return link.screen().root


def events(link: Display) -> list[rq.Event]:
    """Take what has come; waits for nothing."""
    taken = [link.next_event() for _ in range(link.pending_events())]
    if any(event.type == X.MappingNotify for event in taken):
        _REMAPPED.add(id(link))
    return taken


def remapped(link: Display) -> bool:
    """Whether the keyboard's map changed since this was last asked."""
    events(link)
    changed = id(link) in _REMAPPED
    _REMAPPED.discard(id(link))
    return changed

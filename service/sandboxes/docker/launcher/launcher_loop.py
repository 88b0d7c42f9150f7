"""Readiness, timers."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False  # `typing` alone would cost a tenth of the start-up time
if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """Readiness and timers of one thread. Every descriptor is non-blocking, so a stale readiness does no harm."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self.handlers: dict[int, Callable[[], None]] = {}
        self.timers: dict[object, tuple[float, Callable[[], None]]] = {}

    def watch(self, fd: int, events: int, handler: Callable[[], None]) -> None:
        (self.poll.modify if fd in self.handlers else self.poll.register)(fd, events)
        self.handlers[fd] = handler

    def forget(self, fd: int) -> None:
        if self.handlers.pop(fd, None) is not None:
            self.poll.unregister(fd)

    def close(self, fd: int) -> None:
        self.forget(fd)
        os.close(fd)

    def after(self, owner: object, seconds: float, handler: Callable[[], None]) -> None:
        """One timer per owner: a later call replaces the earlier one."""
        self.timers[owner] = (time.monotonic() + seconds, handler)

    def turn(self) -> None:
        timeout = -1.0
        if self.timers:
            timeout = max(0.0, min(when for when, _ in self.timers.values()) - time.monotonic())
        for fd, _ in self.poll.poll(timeout):
            handler = self.handlers.get(fd)
            if handler is not None:
                handler()
        now = time.monotonic()
        for owner, (when, handler) in list(self.timers.items()):
            if when <= now:
                self.timers.pop(owner, None)
                handler()

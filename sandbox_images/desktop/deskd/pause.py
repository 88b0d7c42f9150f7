"""Waiting that an abort cuts short."""

import threading

from faults import Aborted


class Pause:
    def __init__(self) -> None:
        self._aborted = threading.Event()

    def begin(self) -> None:
        self._aborted.clear()

    def abort(self) -> None:
        self._aborted.set()

    @property
    def aborted(self) -> bool:
        return self._aborted.is_set()

    def check(self) -> None:
        """Raises Aborted."""
        if self._aborted.is_set():
            raise Aborted

    def wait(self, seconds: float) -> None:
        """Raises Aborted, at once when it comes."""
        if self._aborted.wait(seconds):
            raise Aborted

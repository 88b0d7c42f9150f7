"""Rooms: fresh sandboxes without a network for work of ours on foreign bytes (graders, evidence), gone afterwards."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from service.domain.limits import Limits
from service.sandboxes.contract import Sandbox


class Rooms(Protocol):
    def open(self, environment: str, limits: Limits) -> AbstractAsyncContextManager[Sandbox]:
        """Make a sandbox of the shipped image ``environment`` that nobody used before; destroyed when the block ends.

        Waits for a free place. ``write_files`` and ``exec`` work at once, without ``start``. Raises SandboxError.
        """
        ...

"""Rooms: fresh sandboxes without a network for work of ours on foreign bytes (graders, evidence), gone afterwards."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from service.domain.limits import Limits
from service.sandboxes.contract import Sandbox


class Rooms(Protocol):
    def open(
        self,
        environment: str,
        limits: Limits,
        *,
        in_memory: bool = False,
        runs_code: bool = False,
        verifier: bool = False,
    ) -> AbstractAsyncContextManager[Sandbox]:
        """Make a sandbox of the shipped image ``environment`` that nobody used before; destroyed when the block ends.

        Waits for a free place, first come, first served. ``write_files`` and ``exec`` work at once, without ``start``.
        ``in_memory``, ``verifier``: see SandboxSpec. ``runs_code``: candidates' programs run inside, so the strongest isolation that
        this host offers and the operator allows is taken. Raises SandboxError; EngineError only after the engine was
        away for longer than the rooms' patience.
        """
        ...

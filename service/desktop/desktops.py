"""The screens of the sandboxes that this process holds: one session each, opened when it is first wanted."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.desktop.session import PROGRAM, DesktopSession
from service.domain.agents import Surface
from service.domain.desktop import Size
from service.sandboxes.contract import Sandbox


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session is opened with."""

    env: Mapping[str, str]
    surface: Surface
    size: Size


@dataclass(slots=True)
class _Held:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: DesktopSession | None = None
    dropped: bool = False


class Desktops:
    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._held: dict[str, _Held] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def of(self, sandbox: Sandbox, opening: Opening) -> DesktopSession:
        """Return the sandbox's session; one that was lost is opened anew, which is tried once.

        Raises DesktopLost, LauncherLost, SandboxGone. A batch that was lost with a session is not done again.
        """
        held = self._held.setdefault(sandbox.id, _Held())
        async with held.lock:
            if held.session is None or held.session.lost is not None:
                held.session = None
                held.session = await DesktopSession.open(
                    sandbox, env=opening.env, surface=opening.surface, size=opening.size, program=self._program
                )
            if held.dropped:
                self._close(held.session)
            return held.session

    def drop(self, sandbox_id: str) -> None:
        """The sandbox is gone, or somebody else's: forget its session."""
        held = self._held.pop(sandbox_id, None)
        if held is not None:
            held.dropped = True
            if held.session is not None:
                self._close(held.session)

    async def close(self) -> None:
        """Close every session; the screens go on."""
        for sandbox_id in list(self._held):
            self.drop(sandbox_id)
        await asyncio.gather(*self._closing)

    def _close(self, session: DesktopSession) -> None:
        task = asyncio.create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

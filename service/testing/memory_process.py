"""A program of the memory sandbox: a real local process whose output is kept until it is acknowledged."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from service.domain.run_states import ExitReport
from service.sandboxes.contract import STREAMS, Command, Exited, Frame, LauncherLost
from service.testing.local_process import LocalProcess, spawn

RING_BYTES = 4 << 20
FRAME_BYTES = 64 << 10
DRAIN_S = 1.0
"""How long a background child may hold the pipes after the program's exit."""


class KeptStream:
    """Bytes of one stream that nobody has acknowledged yet."""

    def __init__(self) -> None:
        self.base = 0
        self.data = bytearray()

    @property
    def end(self) -> int:
        return self.base + len(self.data)

    def ack(self, offset: int) -> None:
        keep_from = min(max(offset, self.base), self.end)
        del self.data[: keep_from - self.base]
        self.base = keep_from


class MemoryProgram:
    def __init__(self, command: Command, root: Path, cwd: Path) -> None:
        self._command = command
        self._root = root
        self._cwd = cwd
        self.streams = {name: KeptStream() for name in STREAMS}
        self.exited: ExitReport | None = None
        self.ended = False
        self.lost: str | None = None
        self.waited_s = 0.0
        """As a launcher would tell it; nothing here measures it."""
        self._changed = asyncio.Condition()
        self._process: LocalProcess | None = None
        self._task = asyncio.create_task(self._run())

    async def frames(self) -> AsyncIterator[Frame | Exited]:
        """Yield from the last acknowledged offsets on; a second reader gets the same bytes."""
        at = {name: kept.base for name, kept in self.streams.items()}
        while True:
            for name, kept in self.streams.items():
                while at[name] < kept.end:
                    start = max(at[name], kept.base)
                    piece = bytes(kept.data[start - kept.base :][:FRAME_BYTES])
                    at[name] = start + len(piece)
                    yield Frame(name, start, piece)
            if self.lost is not None:
                raise LauncherLost("launcher_lost", self.lost)
            if self.exited is not None and self.ended and all(at[n] == k.end for n, k in self.streams.items()):
                yield Exited(self.exited, self.waited_s, {n: k.end for n, k in self.streams.items()})
                return
            async with self._changed:
                await self._changed.wait_for(lambda: self._news(at))

    async def ack(self, stream: str, offset: int) -> None:
        self.streams[stream].ack(offset)
        await self._notify()

    async def kill(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
        if self._process is not None:
            await self._process.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._notify()

    def tell(self, number: int) -> bool:
        return self._process is not None and self.exited is None and self._process.tell(number)

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.signal(number)

    def _news(self, at: Mapping[str, int]) -> bool:
        return self.lost is not None or self.ended or any(at[n] < k.end for n, k in self.streams.items())

    async def _run(self) -> None:
        began = time.monotonic()
        try:
            self._process = spawn(self._command.argv, environment(self._command.env, self._root), self._cwd)
        except OSError as error:
            self.streams["stderr"].data += f"{error}\n".encode()
            self.exited = ExitReport(127, None, 0.0, None)
        else:
            await asyncio.gather(self._process.feed(self._command.stdin), self._reap(self._process, began))
        self.ended = True
        await self._notify()

    async def _reap(self, process: LocalProcess, began: float) -> None:
        pumps = [asyncio.create_task(self._pump(n, process)) for n in STREAMS]
        code = await process.wait()
        rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        self.exited = ExitReport(
            code if code >= 0 else None, -code if code < 0 else None, time.monotonic() - began, rss
        )
        # Bytes still in the pipes are waited for while a reader acknowledges; only an idle pipe is given up.
        while any(not p.done() for p in pumps):
            before = [k.end for k in self.streams.values()]
            await asyncio.wait(pumps, timeout=DRAIN_S)
            if before == [k.end for k in self.streams.values()] and not self._full():
                break
        for pump in pumps:
            pump.cancel()

    async def _pump(self, name: str, process: LocalProcess) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._full())
            data = await process.read(name)
            if not data:
                return
            self.streams[name].data += data
            await self._notify()

    def _full(self) -> bool:
        return sum(len(k.data) for k in self.streams.values()) >= RING_BYTES

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def environment(given: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return a program's environment: what was given, and where the workspace really is."""
    return {**given, "WORKSPACE": str(root)}

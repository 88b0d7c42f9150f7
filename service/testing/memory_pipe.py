"""A resident helper of the memory sandbox: a real local process on two pipes."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.sandboxes.contract import LauncherLost, Pipe, TerminalEnd, ToolFailed
from service.testing.local_process import LocalProcess, spawn

GRACE_S = 2.0


class MemoryPipe(Pipe):
    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._refused = ""
        self._process: LocalProcess | None = None
        self._dropping: list[asyncio.Task[None]] = []
        self._reading: asyncio.Task[bytes] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._lost = False
        try:
            self._process = spawn(argv, env, cwd)
        except OSError as error:
            self._refused = f"{argv[0]}: {error.strerror}"
            return
        self._dropping.append(asyncio.create_task(_drop(self._process, "stderr")))

    async def read(self) -> bytes:
        self._check()
        if self._process is None or self._ending is not None:
            return b""
        self._reading = asyncio.create_task(self._process.read("stdout"))
        try:
            return await self._reading
        except asyncio.CancelledError:
            self._check()
            if self._ending is None:
                raise
            return b""

    async def write(self, data: bytes) -> None:
        self._check()
        if self._process is not None:
            await self._process.write(data)
            self._check()

    async def end(self) -> TerminalEnd:
        if self._process is None:
            raise ToolFailed("not_started", self._refused)
        code = await self._process.wait()
        self._check()
        return TerminalEnd(code, None) if code >= 0 else TerminalEnd(None, -code)

    async def close(self) -> None:
        if self._process is not None and self._ending is None:
            self._ending = asyncio.create_task(self._end(self._process))

    async def kill(self) -> None:
        """The sandbox ended."""
        self._lost = True
        if self._ending is not None:
            await self._ending
        elif self._process is not None:
            self._process.signal(9)
            await self._clear(self._process)

    def _check(self) -> None:
        if self._lost:
            raise LauncherLost("launcher_lost", "the sandbox ended")

    async def _end(self, process: LocalProcess) -> None:
        await self._stop_reading()
        self._dropping.append(asyncio.create_task(_drop(process, "stdout")))
        process.close_input()
        try:
            async with asyncio.timeout(0 if self._lost else GRACE_S):
                await process.wait()
        except TimeoutError:
            process.signal(9)
        await self._clear(process)

    async def _clear(self, process: LocalProcess) -> None:
        await self._stop_reading()
        for task in self._dropping:
            task.cancel()
        await asyncio.gather(*self._dropping, return_exceptions=True)
        process.close_input()
        await process.close()

    async def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


async def _drop(process: LocalProcess, stream: str) -> None:
    while await process.read(stream):
        pass

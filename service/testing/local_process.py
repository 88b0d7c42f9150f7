"""A local process whose end is noticed when *it* ends, not when its last pipe closes (as asyncio's own would)."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

PIECE_BYTES = 64 << 10


class LocalProcess:
    """In a session of its own. Use ``spawn``."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        assert popen.stdout is not None
        assert popen.stderr is not None
        self.pid = popen.pid
        self._popen = popen
        self._pipes = {"stdout": popen.stdout, "stderr": popen.stderr}
        self._ended = asyncio.Event()
        self._pidfd = os.pidfd_open(popen.pid)
        for pipe in self._pipes.values():
            os.set_blocking(pipe.fileno(), False)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    async def feed(self, data: bytes) -> None:
        """Give standard input, then close it."""
        await self.write(data)
        self.close_input()

    async def write(self, data: bytes) -> None:
        """Give standard input; what the program does not want is dropped."""
        stdin = self._popen.stdin
        assert stdin is not None
        view = memoryview(data)
        try:
            os.set_blocking(stdin.fileno(), False)
            while view and not self._ended.is_set():
                try:
                    view = view[os.write(stdin.fileno(), view[:PIECE_BYTES]) :]
                except BlockingIOError:
                    await asyncio.sleep(0.005)
        except (BrokenPipeError, ValueError):  # ValueError: closed meanwhile
            pass

    def close_input(self) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    async def read(self, name: str) -> bytes:
        """Return the next piece of a stream, or nothing at its end."""
        pipe = self._pipes[name]
        while True:
            try:
                return os.read(pipe.fileno(), PIECE_BYTES)
            except BlockingIOError:
                await _readable(pipe.fileno())

    async def wait(self) -> int:
        await self._ended.wait()
        return self._popen.returncode

    def tell(self, number: int) -> bool:
        """Signal the process itself; False if it has ended."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    async def close(self) -> None:
        """Kill what is left of the group and give the descriptors back."""
        self.signal(signal.SIGKILL)
        await self._ended.wait()
        for pipe in self._pipes.values():
            pipe.close()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._popen.wait()
        self._ended.set()


def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> LocalProcess:
    """Start a program. Raises OSError."""
    pipe = subprocess.PIPE
    popen = subprocess.Popen(
        list(argv), stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env), cwd=cwd, start_new_session=True, bufsize=0
    )
    return LocalProcess(popen)


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(fd, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(fd)

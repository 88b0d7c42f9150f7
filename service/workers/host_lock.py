"""The local half of a host id's ownership: a lock that the kernel releases with its process."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from service.domain.errors import Conflict


@asynccontextmanager
async def host_flock(folder: Path, host_id: str, *, wait_s: float = 15.0) -> AsyncGenerator[None]:
    """Hold the lock of this host id. Raises Conflict ``host_locked`` if another process keeps it for ``wait_s``."""
    fd = _open(folder, host_id)
    try:
        await _take(fd, host_id, wait_s)
        yield
    finally:
        os.close(fd)


def _open(folder: Path, host_id: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() or c in "-_" else "_" for c in host_id)
    return os.open(folder / f"host-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


async def _take(fd: int, host_id: str, wait_s: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if loop.time() >= until:
                raise Conflict("host_locked", f"another worker process has host {host_id!r}") from None
            await asyncio.sleep(0.1)
        else:
            return

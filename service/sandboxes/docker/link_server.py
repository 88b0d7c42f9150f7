"""The listening socket of one sandbox, and who may come in how often."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

from service.sandboxes.docker.descriptors import readable
from service.sandboxes.docker.link_peer import Peer

MAX_PENDING = 16
"""Most connections that have not proved themselves."""
MIN_HOLD_S = 0.1
"""A failed connection keeps its place this much longer: so a flood is taken at 160/s at most."""
MAX_HOLD_S = 0.5
"""When all places are taken, the oldest connection gives way after this time: idle attackers keep nobody out."""
BACKLOG = 128


class Listener:
    """Accepts one connection at a time on ``control_dir/launcher.sock``; the kernel's queue is the order of arrival."""

    def __init__(self, path: Path, make_peer: Callable[[], Peer]) -> None:
        self._path = path
        self._make_peer = make_peer
        self._places = asyncio.Semaphore(MAX_PENDING)
        self._holders: dict[Peer, asyncio.Task[None]] = {}
        self._socket = self._bind()
        self._task = asyncio.create_task(self._accept(), name=f"accept {path.parent.name}")

    def _bind(self) -> socket.socket:
        """Bind under a temporary name and rename: there is never a moment without a socket."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        temporary = f".{self._path.name}-{os.getpid()}-{id(self):x}"
        try:
            # Through /proc, since a socket's address has room for 107 bytes only.
            sock.bind(f"/proc/self/fd/{folder}/{temporary}")
            sock.listen(BACKLOG)
            os.chmod(temporary, 0o666, dir_fd=folder)  # noqa: S103 - the agent's uid must reach it; the handshake decides
            os.rename(temporary, self._path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            sock.close()
            raise
        finally:
            os.close(folder)
        return sock

    async def _accept(self) -> None:
        while True:
            await self._places.acquire()
            try:
                peer = await self._take()
            except OSError:  # out of descriptors, or gone before it was taken
                self._places.release()
                await asyncio.sleep(MAX_HOLD_S)
                continue
            self._holders[peer] = asyncio.create_task(self._hold(peer))

    async def _take(self) -> Peer:
        """Accept the next connection; one that is cancelled on the way is closed. Raises OSError."""
        await readable(self._socket.fileno())
        sock, _ = self._socket.accept()
        sock.setblocking(False)
        try:
            _, peer = await asyncio.get_running_loop().connect_accepted_socket(self._make_peer, sock)
        except BaseException:
            sock.close()
            raise
        return peer

    async def _hold(self, peer: Peer) -> None:
        """Keep the peer's place until it is the launcher or gone; make room when there is none left."""
        try:
            await self._wait(peer, MAX_HOLD_S)
            while not peer.decided.is_set():
                if self._places.locked():
                    peer.abort()
                await self._wait(peer, MIN_HOLD_S)
            if not peer.authenticated:
                await asyncio.sleep(MIN_HOLD_S)
        finally:
            del self._holders[peer]
            self._places.release()

    @staticmethod
    async def _wait(peer: Peer, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await peer.decided.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Stop listening and drop who has not proved itself. The socket's file stays: it may be a successor's."""
        holders = list(self._holders.items())
        for peer, _ in holders:
            peer.abort()
        tasks = [self._task, *(task for _, task in holders)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket.close()

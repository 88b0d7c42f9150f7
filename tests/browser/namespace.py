"""A network namespace for the browser: networks of engines that come and go would break its connections.

The server's listener is planted there by ``setns`` in a thread. Without root, both stay where they are.
"""

import atexit
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.needs import needs_browser

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


@dataclass(frozen=True)
class Namespace:
    browser: str
    """Program that starts a Chromium inside."""
    path: str | None
    """Of the namespace; None where there is none of its own."""

    def listen(self, port: int) -> socket.socket:
        """Return a listener on 127.0.0.1 of the namespace."""
        if self.path is None:
            return _listener(port)
        with ThreadPoolExecutor(1) as thread:  # the thread ends with its namespace
            return thread.submit(_inside, self.path, lambda: _listener(port)).result()


def own_namespace(directory: Path) -> Namespace:
    program = needs_browser()
    if os.geteuid() != 0:
        return Namespace(program, None)
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    atexit.register(holder.kill)
    path = f"/proc/{holder.pid}/ns/net"
    while Path(path).readlink() == Path("/proc/self/ns/net").readlink():
        os.sched_yield()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_inside, path, _loopback_up).result()
    wrapper = directory / "chromium"
    wrapper.write_text(f'#!/bin/sh\nexec nsenter --net={path} {program} "$@"\n')
    wrapper.chmod(0o755)
    return Namespace(str(wrapper), path)


def _inside(path: str, do: Callable[[], T]) -> T:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        return do()
    finally:
        os.close(fd)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        flags = struct.unpack("16sh", fcntl.ioctl(sock, _GET_FLAGS, struct.pack("16sh", b"lo", 0)))[1]
        fcntl.ioctl(sock, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP))


def _listener(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(128)
    return sock

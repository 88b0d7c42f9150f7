"""Enter a container's network namespace, in a thread that ends afterwards.

Python 3.11 has no ``os.setns``; libc's is called. The inode is compared with our own *before* entering: a listener
planted in the host's own namespace would be open to the host's network.
"""

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from service.sandboxes.contract import EngineError, SandboxRefused

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_OWN = Path("/proc/self/ns/net")
_libc = ctypes.CDLL(None, use_errno=True)


def inside(namespace: int, work: Callable[[], T], *, timeout_s: float = 10) -> T:
    """Run ``work`` with the network namespace of the open file ``namespace``; return its result. Blocking.

    Raises SandboxRefused if the namespace is our own, EngineError if it cannot be entered, and what ``work`` raises.
    """
    refuse_own(namespace)
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            _enter(namespace)
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - carried to the caller, who raises it
            errors.append(error)

    # Never a pooled thread: it would carry the namespace into its next piece of work.
    thread = threading.Thread(target=run, name="netns", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not results:
        raise EngineError("netns_timeout", f"work in a network namespace: no end within {timeout_s:g} s")
    return results[0]


def refuse_own(namespace: int) -> None:
    there, here = os.fstat(namespace), _OWN.stat()
    if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
        raise SandboxRefused("netns_is_ours", "the sandbox has the worker's own network namespace")


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise EngineError("netns_refused", f"setns: {os.strerror(code)}")


def check_own_namespace(pid: int) -> None:
    """Raise SandboxRefused if the process is in our network namespace or the host's; nothing where it is not visible."""
    theirs = _inode(pid)
    if theirs is not None and theirs in (_inode(os.getpid()), _inode(1)):
        raise SandboxRefused("not_isolated", "the container has no network namespace of its own")


def raise_loopback(pid: int) -> None:
    """Bring the process's loopback up, as the engine's own network or runc would have. Blocking.

    Nothing happens where the process is not visible or has gone. Raises SandboxRefused, EngineError.
    """
    try:
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        inside(namespace, _loopback_up)
    except OSError as error:
        raise EngineError("loopback_down", f"the sandbox's loopback cannot be brought up: {error.strerror}") from error
    finally:
        os.close(namespace)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _inode(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return None

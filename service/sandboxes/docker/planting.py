"""Plant a listener in a sandbox's loopback (CONTRACTS 5): the only way out of a network of none. And dial one there.

Where the engine's namespace file is not visible (a worker in a container) the namespace of the container's first
process serves, and the engine is asked again before it is entered: same pid, still running.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

from service.sandboxes.contract import SandboxGone, ToolFailed
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.netns import inside

BACKLOG = 128
DIAL_S = 5.0
"""A listener of the agent's that takes nobody is a closed one."""
MODEL_PORT, PROXY_PORT = 80, 81


async def plant(engine: Engine, container: str, port: int) -> socket.socket:
    """Return a listening socket on 127.0.0.1:``port`` of the container. Raises SandboxGone, SandboxRefused, EngineError."""
    namespace = await _open_namespace(engine, container)
    try:
        return await engine.pool.run("plant", 10, lambda: inside(namespace, _listener(port)))
    finally:
        os.close(namespace)


async def dial(engine: Engine, container: str, port: int) -> socket.socket:
    """Return a socket connected to 127.0.0.1:``port`` of the container. Raises as ``plant``, and ToolFailed."""
    namespace = await _open_namespace(engine, container)
    try:
        work = _caller(port, DIAL_S)
        return await engine.pool.run("dial", DIAL_S + 10, lambda: inside(namespace, work, timeout_s=DIAL_S + 5))
    finally:
        os.close(namespace)


def _caller(port: int, timeout_s: float) -> Callable[[], socket.socket]:
    def make() -> socket.socket:
        # An address, not a name: nothing is resolved with the sandbox's network or the host's.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout_s)
            made.connect(("127.0.0.1", port))
            made.setblocking(False)
        except OSError as error:  # here, so that its time-out is not taken for the engine's
            made.close()
            raise ToolFailed("port_closed", f"nobody answers on port {port} inside ({error})") from error
        return made

    return make


def _listener(port: int) -> Callable[[], socket.socket]:
    def make() -> socket.socket:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        return listener

    return make


async def _open_namespace(engine: Engine, container: str) -> int:
    before = await _running(engine, container)
    key = str(before["NetworkSettings"].get("SandboxKey") or "")
    if key:
        try:
            return _open(key, container)
        except SandboxGone:  # not visible from here (another mount namespace): by the process, then
            pass
    pid = int(before["State"]["Pid"])
    namespace = _open(f"/proc/{pid}/ns/net", container)
    try:
        after = await _running(engine, container)
        if int(after["State"]["Pid"]) != pid:
            raise SandboxGone("sandbox_restarted", "the container's first process changed")
    except BaseException:
        os.close(namespace)
        raise
    return namespace


def _open(path: str, container: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxGone("netns_gone", f"no network namespace of {container[:12]} ({error.strerror})") from error


async def _running(engine: Engine, container: str) -> dict[str, Any]:
    found = await engine.inspect(container)
    if not found["State"]["Running"]:
        raise SandboxGone("sandbox_dead", "the container is not running")
    return found

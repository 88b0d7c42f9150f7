"""Start-up self-test of a runtime: a planted listener is reached from inside, and no address of the host is.

A runtime registered the wrong way lets the bind succeed and the listener be unreachable, silently: only trying tells.
"""

import asyncio
import fcntl
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from service.domain.limits import MIB, Limits
from service.sandboxes.contract import SandboxError, SandboxSpec
from service.sandboxes.docker.planting import MODEL_PORT
from service.sandboxes.docker.sandbox import DockerSandbox

LIMITS = Limits(memory_bytes=256 * MIB, disk_bytes=32 * MIB, inodes=1000, shm_bytes=MIB, pids=64)
TRY_S = 20.0
_SIOCGIFADDR = 0x8915
PROBE = """
import socket, sys
def ask(host, port):
    try:
        s = socket.create_connection((host, port), 1)
        s.settimeout(2)
        return s.recv(64).decode()
    except OSError as e:
        return "error %s" % e.errno
pairs = [a.rsplit(" ", 1) for a in sys.argv[1:]]
for host, port in pairs:
    print(host, ask(host, int(port)), sep="|")
"""

MakeSandbox = Callable[[SandboxSpec], Awaitable[DockerSandbox]]


@dataclass(frozen=True, slots=True)
class RuntimeCheck:
    runtime: str
    offered: bool
    reason: str


async def check_runtime(
    make: MakeSandbox, resolve: Callable[[str], Awaitable[str]], image: str, runtime: str
) -> RuntimeCheck:
    """Try a runtime; every failure is a reason, never an exception of the sandbox's world."""
    try:
        spec = SandboxSpec(await resolve(image), limits=LIMITS, runtime=runtime)
        sandbox = await make(spec)
    except SandboxError as error:
        return RuntimeCheck(runtime, offered=False, reason=f"no sandbox could be made: {error}")
    try:
        async with asyncio.timeout(TRY_S):
            reason = await try_out(sandbox)
    except (SandboxError, OSError, ValueError, TimeoutError) as error:
        reason = f"{type(error).__name__}: {error}"
    finally:
        await sandbox.destroy()
    return RuntimeCheck(
        runtime, offered=not reason, reason=reason or "planted listener reached, no host address answers"
    )


async def try_out(sandbox: DockerSandbox) -> str:
    """Return what is wrong, or nothing."""
    token = os.urandom(8).hex()
    planted = await sandbox.plant(MODEL_PORT)
    with planted, host_listener() as host:
        serving = [asyncio.create_task(_greet(listener, token)) for listener in (planted, host)]
        try:
            answers = await _ask_inside(sandbox, host.getsockname()[1])
        finally:
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
    first, *others = answers
    if first[1] != token:
        return f"the planted listener is not reached from inside ({first[1]})"
    open_hosts = [host for host, said in others if said == token]
    return f"host addresses answer from inside: {', '.join(open_hosts)}" if open_hosts else ""


async def _ask_inside(sandbox: DockerSandbox, host_port: int) -> list[tuple[str, str]]:
    """Return (address, what it said) for the planted listener first, then for each address of the host."""
    asked = [f"127.0.0.1 {MODEL_PORT}", *(f"{address} {host_port}" for address in host_addresses())]
    done = await sandbox.exec([sandbox.handle.interpreter, "-I", "-S", "-c", PROBE, *asked], timeout_s=TRY_S)
    rows = [line.partition("|") for line in done.stdout.decode(errors="replace").splitlines()]
    if done.code != 0 or len(rows) != len(asked):
        raise ValueError(f"the probe failed inside: {done.stderr[-200:]!r}")
    return [(host, said) for host, _, said in rows]


async def _greet(listener: socket.socket, token: str) -> None:
    loop = asyncio.get_running_loop()
    while True:
        peer, _ = await loop.sock_accept(listener)
        with peer:
            await loop.sock_sendall(peer, token.encode())


def host_listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("0.0.0.0", 0))  # noqa: S104 - the point: what is open on every address must not answer inside
    listener.listen(16)
    listener.setblocking(False)
    return listener


def host_addresses() -> list[str]:
    """Return the IPv4 addresses of this network namespace's interfaces."""
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ask:
        for _, name in socket.if_nameindex():
            try:
                raw = fcntl.ioctl(ask, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # an interface without an address
                continue
            found.append(socket.inet_ntoa(raw[20:24]))
    return found

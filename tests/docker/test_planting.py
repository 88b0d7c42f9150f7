# ruff: noqa: PTH115, PTH208 - links of /proc, read as they are
"""Planted listeners, and runtimes that a self-test does not let through."""

import asyncio
import os
import socket
from contextlib import suppress

import pytest

from service.sandboxes.contract import Command, EngineError, SandboxGone, SandboxRefused, SandboxSpec, ToolFailed
from service.sandboxes.docker import netns, planting, selftest
from service.sandboxes.docker.backend import RUNTIMES, DockerBackend
from service.sandboxes.docker.netns import inside
from service.sandboxes.docker.sandbox import DockerSandbox
from service.testing.sandbox_bench import ENV, Bench, python
from tests.docker.conftest import bench_on

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASK = "import socket; s = socket.create_connection(('127.0.0.1', 80), 5); s.sendall(b'ask'); print(s.recv(10).decode())"


async def answer_once(listener: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    peer, _ = await loop.sock_accept(listener)
    with peer:
        said = await loop.sock_recv(peer, 10)
        await loop.sock_sendall(peer, b"answer")
    return said


@pytest.mark.fault(47)
@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_a_planted_listener_is_reached_from_inside_only(backend: DockerBackend, runtime: str) -> None:
    bench = await bench_on(backend, runtime)
    sandbox = await backend.make(bench.spec)
    with await sandbox.plant(80) as listener:
        serving = asyncio.create_task(answer_once(listener))
        assert (await python(sandbox, ASK)).strip() == "answer"
        assert await serving == b"ask"
        with pytest.raises(OSError, match="refused"):
            await asyncio.to_thread(socket.create_connection, ("127.0.0.1", 80), 1)
    with await sandbox.plant(80) as again:  # as after the worker's restart
        serving = asyncio.create_task(answer_once(again))
        assert (await python(sandbox, ASK)).strip() == "answer"
        await serving
    await sandbox.kill()
    with pytest.raises(SandboxGone):
        await sandbox.plant(80)
    await sandbox.destroy()


SEE = """
import socket
def ask(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            return s.recv(9).decode()
    except OSError as e:
        return type(e).__name__
names = sorted(name for _, name in socket.if_nameindex())
try:
    found = socket.getaddrinfo("{other}", 80)
except OSError:
    found = []
print(names, ask(8080), found)
"""


@pytest.mark.fault(49)
async def test_another_sandbox_is_not_there(backend: DockerBackend) -> None:
    bench = await bench_on(backend, "runc")
    one, two = await backend.make(bench.spec), await backend.make(bench.spec)
    serve = "import socket; s = socket.create_server(('127.0.0.1', 8080)); print('up', flush=True)\nwhile True: s.accept()[0].send(b'hello')"
    await two.start(Command([two.handle.interpreter, "-c", serve], {"PATH": "/usr/bin:/bin"}))
    async with asyncio.timeout(30):
        await anext(two.output())
    there = (await python(two, SEE.replace("{other}", "x"))).strip()
    here = (await python(one, SEE.replace("{other}", two.handle.container[:12]))).strip()
    assert there == "['lo'] hello []"
    assert here == "['lo'] ConnectionRefusedError []"
    for sandbox in (one, two):
        await sandbox.destroy()


async def test_our_own_namespace_is_never_entered() -> None:
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    with pytest.raises(SandboxRefused, match="own network namespace"):
        inside(own, lambda: None)
    os.close(own)


def _namespaces_of_our_threads() -> set[str]:
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/task/{task}/ns/net"))
    return found


async def test_the_thread_ends_and_we_stay_where_we_are(bench: Bench, backend: DockerBackend) -> None:
    ours = os.readlink("/proc/self/ns/net")
    sandbox = await backend.make(bench.spec)
    for port in range(8000, 8010):
        (await sandbox.plant(port)).close()
    for _ in range(50):  # a joined thread takes an instant to leave the kernel's table
        if _namespaces_of_our_threads() == {ours}:
            break
        await asyncio.sleep(0.02)
    assert _namespaces_of_our_threads() == {ours}
    await sandbox.destroy()


async def test_a_runtime_that_fails_its_test_is_not_offered(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host address that answers inside, and a planted listener that does not, each with its reason."""
    other = DockerBackend(backend.data_dir, backend.deployment, runtimes=["runc", "no-such-runtime"])
    real = DockerSandbox.plant

    async def beside(sandbox: DockerSandbox, port: int) -> socket.socket:
        return await real(sandbox, port + 1)

    monkeypatch.setattr(DockerSandbox, "plant", beside)
    assert list(await other.offered_runtimes()) == []
    assert "not reached from inside" in other.runtime_checks["runc"].reason
    assert "has no runtime" in other.runtime_checks["no-such-runtime"].reason
    with pytest.raises(SandboxRefused, match="not reached"):
        await other.make(SandboxSpec(bench.spec.environment))
    monkeypatch.setattr(DockerSandbox, "plant", real)
    assert list(await other.offered_runtimes()) == []  # not tried again at once
    monkeypatch.setattr("service.sandboxes.docker.backend.RETRY_S", 0.0)
    assert list(await other.offered_runtimes()) == ["runc"]
    await other.close()


async def test_a_loopback_that_we_may_not_bring_up_is_the_engines_error(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker without NET_ADMIN: a reason of the self-test, not the worker's end."""
    sandbox = await backend.make(bench.spec)
    pid = int((await backend.engine.inspect(sandbox.handle.container))["State"]["Pid"])

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(netns, "_loopback_up", refused)
    with pytest.raises(EngineError, match="not permitted"):
        netns.raise_loopback(pid)
    await sandbox.destroy()


async def test_a_host_that_answers_inside_is_noticed(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's listener is planted inside as well: what an open bridge would look like."""
    monkeypatch.setattr(selftest, "host_addresses", lambda: ["127.0.0.1"])
    sandbox = await backend.make(bench.spec)
    opened = selftest.host_listener()
    port = opened.getsockname()[1]
    with opened, await sandbox.plant(port) as inside_too:
        monkeypatch.setattr(selftest, "host_listener", lambda: inside_too)
        reason = await selftest.try_out(sandbox)
    assert "host addresses answer from inside: 127.0.0.1" in reason
    await sandbox.destroy()


async def test_agents_keep_high_ports(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        done = await sandbox.exec(
            ["python3", "-c", "import socket; socket.create_server(('127.0.0.1', 8080))"], env=ENV
        )
        assert done.code == 0


FULL = """
import socket, time
listener = socket.socket()
listener.bind(("127.0.0.1", 5900))
listener.listen(0)
print("up", flush=True)
time.sleep(600)
"""


async def test_a_listener_that_takes_nobody_is_not_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen's server that the agent replaced: connections pile up in its queue, then none is answered."""
    monkeypatch.setattr(planting, "DIAL_S", 0.5)
    async with bench.sandbox() as sandbox:
        pipe = await sandbox.open_pipe(["python3", "-c", FULL], env=ENV)
        assert await pipe.read() == b"up\n"
        taken: list[socket.socket] = []
        refused = ""
        while not refused and len(taken) < 10:
            try:
                taken.append(await sandbox.dial(5900))
            except ToolFailed as error:
                refused = error.type
        blocking = [one.getblocking() for one in taken]
        for one in taken:
            one.close()
        assert (refused, blocking) == ("port_closed", [False] * len(taken))
        assert taken
        await pipe.close()

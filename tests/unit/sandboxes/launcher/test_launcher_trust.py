"""The launcher's socket is reachable by the agent: who is believed, and what others can do."""

import asyncio
import os
import signal
import socket
import subprocess
import time

import pytest

from service.sandboxes.contract import LauncherLost
from service.sandboxes.docker.framing import HEADER, VERSION, Kind, encode, pack, prove
from tests.unit.sandboxes.launcher.rig import Rig, as_agent, interpreter, run_to_end, until

NONCE = bytes(range(32))
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(rig: Rig) -> Peer:
    return await asyncio.open_unix_connection(str(rig.control / "launcher.sock"))


async def is_dropped(peer: Peer) -> bool:
    """True if the host ends the connection without a further word."""
    reader, writer = peer
    async with asyncio.timeout(5):
        try:
            rest = await reader.read()
        except ConnectionError:
            rest = b""
    writer.close()
    return rest == b""


def hello(*, keyed: bool = True) -> bytes:
    return encode(Kind.HELLO, flag=int(keyed), number=VERSION, body=NONCE)


async def challenge(peer: Peer, *, keyed: bool = True) -> bytes:
    peer[1].write(hello(keyed=keyed))
    head = await peer[0].readexactly(HEADER.size)
    kind, _, _, length = HEADER.unpack(head)
    assert kind == Kind.CHALLENGE
    return await peer[0].readexactly(length)


async def impersonate(rig: Rig) -> Peer:
    """Be the launcher, with the key."""
    peer = await connect(rig)
    body = await challenge(peer)
    peer[1].write(encode(Kind.PROOF, body=prove(rig.key, b"launcher", NONCE, body[:32])))
    kind, _, _, _ = HEADER.unpack(await peer[0].readexactly(HEADER.size))
    assert kind == Kind.READY
    return peer


async def test_a_peer_without_the_key_is_dropped_and_counted(rig: Rig) -> None:
    link = await rig.up()
    peer = await connect(rig)
    peer[1].write(hello(keyed=False))
    assert await is_dropped(peer)
    await until(lambda: link.rejected == 1)
    assert link.connected
    assert (await link.exec(["true"], cwd="/")).code == 0


async def test_the_key_is_handed_over_once(rig: Rig) -> None:
    link = await rig.link(may_key=True, wait=False)
    first, second = await connect(rig), await connect(rig)
    assert (await challenge(first, keyed=False))[64:] == rig.key
    second[1].write(hello(keyed=False))
    assert await is_dropped(second)
    first[1].close()
    await until(lambda: link.rejected == 2)


async def test_a_keyed_peer_is_not_told_the_key(rig: Rig) -> None:
    await rig.link(may_key=True, wait=False)
    peer = await connect(rig)
    assert len(await challenge(peer)) == 64
    peer[1].close()


async def test_an_unkeyed_launcher_is_not_adopted(rig: Rig) -> None:
    link = await rig.link(wait=False)
    rig.launch()
    with pytest.raises(LauncherLost):
        await link.wait_connected(0.5)
    assert link.rejected > 0


@pytest.mark.parametrize("proof", [b"", bytes(32), b"x" * 33])
async def test_a_wrong_proof(rig: Rig, proof: bytes) -> None:
    link = await rig.up()
    peer = await connect(rig)
    await challenge(peer)
    peer[1].write(encode(Kind.PROOF, body=proof))
    assert await is_dropped(peer)
    assert link.connected


async def test_a_reflected_proof(rig: Rig) -> None:
    await rig.up()
    peer = await connect(rig)
    body = await challenge(peer)
    peer[1].write(encode(Kind.PROOF, body=body[32:64]))
    assert await is_dropped(peer)


async def test_a_replayed_handshake(rig: Rig) -> None:
    link = await rig.link(wait=False)
    peer = await connect(rig)
    body = await challenge(peer)
    said = encode(Kind.PROOF, body=prove(rig.key, b"launcher", NONCE, body[:32]))
    peer[1].write(said)
    await until(lambda: link.connected)
    again = await connect(rig)
    await challenge(again)
    again[1].write(said)
    assert await is_dropped(again)
    assert (link.connected, link.rejected) == (True, 1)
    peer[1].close()


@pytest.mark.parametrize(
    "said",
    [
        HEADER.pack(Kind.HELLO, 1, VERSION, (1 << 32) - 1),
        HEADER.pack(Kind.HELLO, 1, VERSION, 65),
        encode(Kind.HELLO, flag=1, number=VERSION + 1, body=NONCE),
        encode(Kind.HELLO, flag=1, number=VERSION, body=b"short"),
        encode(Kind.OUTPUT, body=b"forged"),
        encode(Kind.RESULT, number=1, body=pack(b"ok")),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
async def test_nonsense_before_the_handshake(rig: Rig, said: bytes) -> None:
    link = await rig.up()
    peer = await connect(rig)
    peer[1].write(said)
    assert await is_dropped(peer)
    assert link.connected


async def test_a_truncated_hello(rig: Rig) -> None:
    link = await rig.up()
    _, writer = await connect(rig)
    writer.write(hello()[:20])
    writer.close()
    await until(lambda: link.rejected == 1)


async def test_silence_ends_after_the_handshake_deadline(rig: Rig) -> None:
    link = await rig.up()
    started = time.monotonic()
    peer = await connect(rig)
    assert await is_dropped(peer)
    assert 1.5 < time.monotonic() - started < 4
    assert link.rejected == 1


def output(offset: int, data: bytes, stream: int = 0) -> bytes:
    return encode(Kind.OUTPUT, flag=stream, number=offset, body=data)


@pytest.mark.parametrize(
    "said",
    [
        HEADER.pack(Kind.OUTPUT, 0, 0, (1 << 32) - 1),
        output(5, b"a gap"),
        output(0, b"x", stream=7),
        output(0, b"x" * ((64 << 10) + 1)),
        output(0, b""),
        b"".join(output(n << 16, bytes(1 << 16)) for n in range(70)),
        encode(Kind.EXIT, body=b"nonsense"),
        encode(Kind.EXIT, body=pack(b"0", b"9", b"1", b"1", b"1", b"", b"0", b"0")),
    ],
)
async def test_an_authenticated_peer_that_breaks_the_rules(rig: Rig, said: bytes) -> None:
    """Even one that holds the key cannot make the worker buffer without bound."""
    link = await rig.link(wait=False)
    peer = await impersonate(rig)
    reading = asyncio.ensure_future(anext(link.output()))
    kind, _, number, length = HEADER.unpack(await peer[0].readexactly(HEADER.size))
    await peer[0].readexactly(length)
    assert kind == Kind.RESUME
    peer[1].write(encode(Kind.RESUMED, number=number, body=pack(b"0", b"0")) + said)
    await until(lambda: not link.connected)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    peer[1].close()


@pytest.mark.parametrize(
    "answer", [pack(b"maybe"), b"\0\0\0\xff", pack(b"ok"), pack(b"ok", b"x", b"", b"", b"", b"", b"")]
)
async def test_nonsense_answers(rig: Rig, answer: bytes) -> None:
    link = await rig.link(wait=False)
    peer = await impersonate(rig)
    call = asyncio.create_task(link.exec(["true"]))
    kind, _, number, _ = HEADER.unpack(await peer[0].readexactly(HEADER.size))
    assert kind == Kind.EXEC
    peer[1].write(encode(Kind.RESULT, number=number, body=answer))
    with pytest.raises(LauncherLost):
        await call
    peer[1].close()


async def test_a_host_without_the_key_is_not_served(rig: Rig) -> None:
    """Whoever might listen in our place gets neither a proof nor a service, and cannot re-key the launcher."""
    link = await rig.up()
    await link.start(rig.shell("sleep 1; echo secret"))
    await link.close()
    (rig.control / "launcher.sock").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(rig.control / "launcher.sock"))
        (rig.control / "launcher.sock").chmod(0o666)
        listener.listen()
        listener.settimeout(5)
        for key in (b"", b"k" * 32):
            sock, _ = await asyncio.to_thread(listener.accept)
            with sock:
                sock.settimeout(5)
                said = await asyncio.to_thread(sock.recv, 4096)
                assert len(said) == HEADER.size + 32
                proof = prove(b"k" * 32, b"host", NONCE, said[-32:])
                served = encode(Kind.READY) + encode(Kind.RESUME, number=1, body=pack(b"0", b"0"))
                sock.sendall(encode(Kind.CHALLENGE, body=NONCE + proof + key) + served)
                assert await asyncio.to_thread(hears_nothing, sock)
    assert (await run_to_end(await rig.link())).stdout == b"secret\n"


def hears_nothing(sock: socket.socket) -> bool:
    try:
        return sock.recv(4096) == b""
    except ConnectionError:
        return True


SPY = """
import ctypes, os, sys
pid, refused = int(sys.argv[1]), []
def attempt(name, action):
    try:
        action()
    except OSError as error:
        refused.append(f"{name}:{error.errno}")
def ptrace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
def vm():
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(8)
    class Iov(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    local, remote = Iov(ctypes.addressof(buffer), 8), Iov(int(sys.argv[2], 16), 8)
    if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "vm")
def pidfd():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.pidfd_open(pid)
    if libc.syscall(438, fd, 3, 0) < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
attempt("mem", lambda: open(f"/proc/{pid}/mem", "rb"))
attempt("environ", lambda: open(f"/proc/{pid}/environ", "rb"))
attempt("maps", lambda: open(f"/proc/{pid}/maps", "rb").read())
attempt("fd", lambda: os.listdir(f"/proc/{pid}/fd"))
attempt("cwd", lambda: os.readlink(f"/proc/{pid}/cwd"))
attempt("ptrace", ptrace)
attempt("vm", vm)
attempt("pidfd", pidfd)
print(os.getuid(), *[r.split(":")[0] for r in refused])
"""


CLOSED = ["mem", "environ", "maps", "fd", "cwd", "ptrace", "vm", "pidfd"]


async def test_the_launchers_memory_is_closed_to_its_own_uid(rig: Rig) -> None:
    link = await rig.up()
    with open(f"/proc/{rig.pid}/maps") as maps:  # noqa: PTH123, ASYNC230
        address = next(line.split("-")[0] for line in maps if "[heap]" in line)
    result = await link.exec([interpreter(), "-I", "-c", SPY, str(rig.pid), address], cwd="/")
    uid, *refused = result.stdout.decode().split()
    assert refused == CLOSED
    assert int(uid) == (10001 if os.geteuid() == 0 else os.getuid())


async def test_children_inherit_neither_key_nor_descriptors(rig: Rig) -> None:
    link = await rig.up()
    result = await link.exec(["sh", "-c", "cat /proc/self/environ; ls /proc/self/fd"], cwd="/")
    assert rig.key not in result.stdout
    assert result.stdout.split(b"\0")[-1].split() == [b"0", b"1", b"2", b"3"]


async def test_a_python_without_ctypes_is_sealed_by_its_unreadable_copy(rig: Rig) -> None:
    link = await rig.link(may_key=True, wait=False)
    main = rig.control / "launcher_main.py"
    (rig.control / "__pycache__").rename(rig.control / "unused")
    main.write_text(main.read_text().replace("import ctypes", "import no_such_module"))
    rig.launch()
    if os.geteuid() != 0:
        pytest.skip("root owns the files of an undumpable process: to be seen for another user only")
    await link.wait_connected(10)
    spied = await link.exec([interpreter(), "-I", "-c", SPY, str(rig.pid), "0x1000"], cwd="/")
    assert spied.stdout.decode().split()[1:] == CLOSED


FLOOD = """
import socket, sys, threading, time
def attack(hold):
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(sys.argv[1])
            if hold:
                s.recv(1)
        except OSError:
            time.sleep(0.001)
        s.close()
for n in range(60):
    threading.Thread(target=attack, args=(n % 2,), daemon=True).start()
print("on", flush=True)
time.sleep(30)
"""


async def test_a_flood_of_connections_does_not_keep_the_launcher_out(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("sleep 0.2; echo x"))
    command = [*as_agent(), interpreter(), "-I", "-c", FLOOD, str(rig.control / "launcher.sock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as attacker:  # noqa: ASYNC220
        try:
            assert attacker.stdout is not None
            await asyncio.to_thread(attacker.stdout.readline)
            await link.close()
            await asyncio.sleep(0.2)
            successor = await rig.link(wait=False)
            await successor.wait_connected(15)
            assert (await run_to_end(successor)).stdout == b"x\n"
            assert successor.pending <= 17
            assert successor.rejected < 1000
        finally:
            attacker.kill()


async def test_failed_connections_are_taken_at_a_bounded_rate(rig: Rig) -> None:
    link = await rig.link(wait=False)
    started = time.monotonic()
    while time.monotonic() < started + 1.5:
        try:
            _, writer = await connect(rig)
        except BlockingIOError:  # the kernel's queue is full
            await asyncio.sleep(0.001)
            continue
        writer.close()
    assert 0 < link.rejected <= 16 + 160 * (time.monotonic() - started)


async def test_a_frozen_launcher_delays_but_loses_nothing(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("echo a; sleep 0.2; echo b"))
    os.kill(rig.pid, signal.SIGSTOP)
    await asyncio.sleep(0.3)
    os.kill(rig.pid, signal.SIGCONT)
    assert (await run_to_end(link)).stdout == b"a\nb\n"

"""Contract checks: resident helpers on two pipes, and dialling what listens inside."""

import asyncio
import hashlib

from service.sandboxes.contract import Pipe, Sandbox, SandboxGone, ToolFailed
from service.testing.sandbox_bench import ENV, Bench, CheckTable, open_descriptors, python

PIPES = CheckTable()
MIB = 1 << 20
WINDOWS = 2 * MIB
"""More than all buffers between a helper and us hold."""
_ECHO = """
import hashlib, sys
asked = sys.stdin.buffer.read(5 << 20)
sys.stderr.write("x" * (1 << 20))
said = hashlib.sha256(asked).digest() * ((20 << 20) // 32)
sys.stdout.buffer.write(said)
sys.stdout.buffer.flush()
sys.exit(7)
"""
_FLOOD = """
import os
sent = 0
while True:
    sent += os.write(1, b"x" * 65536)
    with open("output/sent", "w") as note:
        note.write(str(sent))
"""
_GOODBYE = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.read()
open("output/goodbye", "w").write("x")
"""
_DEAF = """
import os, time
print(os.getpid(), flush=True)
while True:
    time.sleep(1)
"""
_SERVER = """
import socket
with socket.create_server(("127.0.0.1", 5900)) as listener:
    print("up", flush=True)
    peer, _ = listener.accept()
    peer.sendall(b"RFB" + peer.recv(5))
    peer.close()
"""


async def helper(sandbox: Sandbox, code: str) -> Pipe:
    return await sandbox.open_pipe(["python3", "-c", code], env=ENV)


async def everything(pipe: Pipe) -> bytes:
    said = bytearray()
    while piece := await pipe.read():
        said += piece
    return bytes(said)


async def gone(sandbox: Sandbox, pid: int) -> bool:
    look = f"import os\ntry: print(open('/proc/{pid}/stat').read().rpartition(')')[2].split()[0])\nexcept OSError: print('gone')"
    return (await python(sandbox, look)).strip() in ("gone", "Z")


@PIPES.add()
async def a_helper_takes_and_gives_more_than_any_buffer(bench: Bench) -> None:
    asked = bytes(range(256)) * (5 * MIB // 256)
    async with bench.sandbox() as sandbox:
        pipe = await helper(sandbox, _ECHO)
        async with asyncio.timeout(60):
            _, said = await asyncio.gather(pipe.write(asked), everything(pipe))
            assert said == hashlib.sha256(asked).digest() * (20 * MIB // 32)
            assert (await pipe.end()).code == 7
        await pipe.close()


@PIPES.add()
async def a_helper_that_nobody_reads_waits(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        pipe = await helper(sandbox, _FLOOD)
        async with asyncio.timeout(60):
            assert await pipe.read()
            at = -1
            while (now := int(await python(sandbox, "print(open('output/sent').read() or 0)"))) != at:
                at = now
                await asyncio.sleep(0.3)
            assert at <= WINDOWS
        await pipe.close()


@PIPES.add()
async def who_writes_to_a_helper_that_does_not_read_waits(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        pipe = await helper(sandbox, _DEAF)
        await pipe.read()
        try:
            async with asyncio.timeout(1):
                await pipe.write(bytes(WINDOWS))
        except TimeoutError:
            pass
        else:
            raise AssertionError("2 MiB went to a helper that reads nothing")
        assert (await sandbox.exec(["true"], env=ENV)).code == 0  # the connection is not held up
        await pipe.close()


@PIPES.add()
async def a_helper_may_say_goodbye_and_is_ended_if_it_does_not(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        for code in (_GOODBYE, _DEAF):
            pipe = await helper(sandbox, code)
            async with asyncio.timeout(60):
                pid = int(await pipe.read())
                await pipe.close()
                assert await pipe.read() == b""
                while not await gone(sandbox, pid):  # noqa: ASYNC110 - only a look can tell
                    await asyncio.sleep(0.1)
            await pipe.close()
        assert await python(sandbox, "print(open('output/goodbye').read())") == "x\n"


@PIPES.add(95)
async def many_helpers_leak_nothing(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        before = open_descriptors()
        for _ in range(20):
            pipe = await helper(sandbox, "print('up')")
            assert await everything(pipe) == b"up\n"
            assert (await pipe.end()).code == 0
            await pipe.close()
        missing = await sandbox.open_pipe(["/no/such/helper"], env=ENV)
        try:
            await missing.end()
        except ToolFailed:
            await missing.close()
        else:
            raise AssertionError("what cannot be started is not said")
        async with asyncio.timeout(10):
            while open_descriptors() > before + 4:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@PIPES.add(semantic=False)
async def what_listens_inside_can_be_dialled(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    async with bench.sandbox() as sandbox:
        pipe = await helper(sandbox, _SERVER)
        async with asyncio.timeout(60):
            assert await pipe.read() == b"up\n"
            with await sandbox.dial(5900) as screen:
                await loop.sock_sendall(screen, b" 003.")
                assert await loop.sock_recv(screen, 64) == b"RFB 003."
                assert await loop.sock_recv(screen, 64) == b""
            await everything(pipe)
        await pipe.close()
        for port in (5900, 5901):
            assert await _refused(sandbox, port) == "port_closed"
        await sandbox.kill()
        assert await _refused(sandbox, 5900) == "sandbox_dead"


async def _refused(sandbox: Sandbox, port: int) -> str:
    try:
        (await sandbox.dial(port)).close()
    except (ToolFailed, SandboxGone) as error:
        return error.type
    return "connected"

"""Resident helpers on two pipes: windows, ends, and what becomes of them without a connection."""

import asyncio
import hashlib

import pytest

from service.sandboxes.contract import LauncherLost, Pipe, ToolFailed
from service.sandboxes.docker import link as links
from service.sandboxes.docker.link import LauncherLink
from tests.unit.sandboxes.launcher.rig import PATH, Rig, interpreter, is_dead, until

ENV = {"PATH": PATH}


async def helper(rig: Rig, link: LauncherLink, code: str) -> Pipe:
    return await link.open_pipe([interpreter(), "-I", "-c", code], env=ENV, cwd=str(rig.workspace))


async def rest(pipe: Pipe) -> bytes:
    said = bytearray()
    async with asyncio.timeout(30):
        while piece := await pipe.read():
            said += piece
    return bytes(said)


def resident(pid: int) -> int:
    """Bytes of a process's own memory."""
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


async def test_neither_side_holds_more_than_its_window(rig: Rig) -> None:
    """5 MiB one way and 20 MiB the other; the launcher's memory does not follow."""
    link = await rig.up()
    code = (
        "import sys, hashlib, time; time.sleep(0.5); asked = sys.stdin.buffer.read(5 << 20);"
        "sys.stdout.buffer.write(hashlib.sha256(asked).digest() * ((20 << 20) // 32))"
    )
    before = resident(rig.pid)
    pipe = await helper(rig, link, code)
    asked = bytes(range(256)) * (5 << 12)
    writing = asyncio.create_task(pipe.write(asked))
    await asyncio.sleep(0.2)
    assert not writing.done()
    assert resident(rig.pid) < before + (2 << 20)
    await writing
    await asyncio.sleep(0.3)
    assert resident(rig.pid) < before + (2 << 20)
    assert await rest(pipe) == hashlib.sha256(asked).digest() * ((20 << 20) // 32)
    assert (await pipe.end()).code == 0


async def test_the_connection_goes_on_while_a_helper_floods(rig: Rig) -> None:
    link = await rig.up()
    pipe = await helper(rig, link, "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    assert await pipe.read()
    await asyncio.sleep(0.3)
    assert (await link.exec(["true"], cwd="/")).code == 0
    await pipe.close()


async def test_what_a_helper_left_in_the_background_does_not_hold_its_end_up(rig: Rig) -> None:
    link = await rig.up()
    code = "import subprocess; subprocess.Popen(['sleep', '5']); print('last words', flush=True)"
    pipe = await helper(rig, link, code)
    assert await rest(pipe) == b"last words\n"
    assert (await pipe.end()).code == 0


async def test_input_that_nobody_wants_is_dropped(rig: Rig) -> None:
    link = await rig.up()
    pipe = await helper(rig, link, "import os, time; os.close(0); print('deaf', flush=True); time.sleep(60)")
    assert await pipe.read() == b"deaf\n"
    async with asyncio.timeout(20):
        await pipe.write(bytes(5 << 20))
    await pipe.close()


@pytest.mark.parametrize("how", ["close", "drop"])
async def test_a_helper_says_goodbye_or_dies(rig: Rig, how: str) -> None:
    """Its input ends first, so that it can let go of what it holds; what it says then is read by nobody."""
    link = await rig.up()
    deaf = "import os, time; print(os.getpid(), flush=True)\nwhile True: time.sleep(9)"
    polite = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read(); print('x' * 500000); open('bye', 'w')"
    pipes = [await helper(rig, link, code) for code in (deaf, polite)]
    pids = [int(await pipe.read()) for pipe in pipes]
    if how == "close":
        for pipe in pipes:
            await pipe.close()
            assert await pipe.read() == b""
    else:
        link.drop_connection()
        for pipe in pipes:
            with pytest.raises(LauncherLost):
                await pipe.read()
            with pytest.raises(LauncherLost):
                await pipe.end()
            with pytest.raises(LauncherLost):
                await pipe.write(b"more")
    for pid in pids:
        await until(lambda pid=pid: is_dead(pid))
    assert (rig.workspace / "bye").exists()
    await link.wait_connected(10)
    await until(lambda: rig.zombies() == 0)
    again = await helper(rig, link, "print('up')")
    assert await rest(again) == b"up\n"


async def test_a_launcher_that_is_away_is_not_waited_for_long(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "START_S", 0.3)
    link = await rig.link(may_key=True, wait=False)
    with pytest.raises(LauncherLost):
        await helper(rig, link, "")


async def test_helpers_are_few(rig: Rig) -> None:
    link = await rig.up()
    pipe = await link.open_pipe(["no-such-program"], env=ENV, cwd="/")
    with pytest.raises(ToolFailed):
        await pipe.end()
    opened = [await helper(rig, link, "import sys; sys.stdin.read()") for _ in range(8)]
    ninth = await helper(rig, link, "")
    with pytest.raises(ToolFailed, match="8 pipes"):
        await ninth.end()
    for one in opened:
        await one.close()
    await until(lambda: rig.zombies() == 0)
    descriptors = rig.descriptors()
    assert await rest(await helper(rig, link, "print('room again')")) == b"room again\n"
    await until(lambda: rig.descriptors() <= descriptors)

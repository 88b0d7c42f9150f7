"""Interactive programs."""

import asyncio

import pytest

from service.sandboxes.contract import LauncherLost, Terminal, ToolFailed
from service.sandboxes.docker.link import LauncherLink
from tests.unit.sandboxes.launcher.rig import PATH, Rig, is_dead, until

ENV = {"PATH": PATH, "TERM": "dumb", "PS1": "$ "}


async def bash(link: LauncherLink, script: str = "", rows: int = 30, columns: int = 100) -> Terminal:
    argv = ["bash", "-c", script] if script else ["bash", "--norc", "-i"]
    return await link.open_terminal(argv, env=ENV, cwd="/", rows=rows, columns=columns)


async def until_seen(terminal: Terminal, wanted: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(10):
        while wanted not in seen:
            piece = await terminal.read()
            assert piece, seen
            seen += piece
    return seen


async def rest(terminal: Terminal) -> bytes:
    seen = b""
    async with asyncio.timeout(20):
        while piece := await terminal.read():
            seen += piece
    return seen


async def test_a_shell_has_a_terminal_its_size_and_job_control(rig: Rig) -> None:
    link = await rig.up()
    terminal = await bash(link)
    await terminal.write(b"tty; stty size\n")
    assert b"/dev/pts/" in await until_seen(terminal, b"30 100")
    await terminal.resize(50, 132)
    await terminal.write(b"stty size\n")
    await until_seen(terminal, b"50 132")
    await terminal.write(b"sleep 60\n")
    await asyncio.sleep(0.3)
    await terminal.write(b"\x03")
    await terminal.write(b"echo after-$?\n")
    await until_seen(terminal, b"after-130")
    await terminal.write(b"exit 7\n")
    await rest(terminal)
    assert (await terminal.end()).code == 7


async def test_output_waits_for_its_reader_and_none_is_lost(rig: Rig) -> None:
    link = await rig.up()
    terminal = await bash(link, "stty -onlcr; head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    await asyncio.sleep(0.5)
    assert await link.exec(["true"], cwd="/")  # the connection is not held up
    assert len(await rest(terminal)) == 3_000_000 + len("end\n")
    assert (await terminal.end()).code == 0


@pytest.mark.parametrize("how", ["close", "drop"])
async def test_a_terminal_ends_with_its_reader(rig: Rig, how: str) -> None:
    link = await rig.up()
    terminal = await bash(link, "echo pid=$$.; sleep 60")
    pid = int((await until_seen(terminal, b".")).partition(b"=")[2].partition(b".")[0])
    if how == "close":
        await terminal.close()
    else:
        link.drop_connection()
        with pytest.raises(LauncherLost):
            await terminal.end()
    await until(lambda: is_dead(pid))
    await link.wait_connected(10)
    await until(lambda: rig.zombies() == 0)


async def test_what_cannot_be_started_is_said(rig: Rig) -> None:
    link = await rig.up()
    terminal = await link.open_terminal(["no-such-program"], env=ENV, cwd="/", rows=1, columns=1)
    with pytest.raises(ToolFailed):
        await terminal.end()
    opened = [await bash(link, "sleep 60") for _ in range(8)]
    ninth = await bash(link, "true")
    with pytest.raises(ToolFailed, match="8 terminals"):
        await ninth.end()
    for one in opened:
        await one.close()

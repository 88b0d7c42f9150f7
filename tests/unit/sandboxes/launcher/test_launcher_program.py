"""The scaffold's command: start, output, exit."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from service.sandboxes.contract import Command, Exited, Frame, LauncherLost
from service.sandboxes.docker.link import LauncherLink
from tests.unit.sandboxes.launcher.rig import PATH, Rig, is_dead, run_to_end, until


def resident_bytes(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_output_exit_code_and_totals(rig: Rig) -> None:
    got = await run_to_end(await rig.up(), rig.shell("echo out; echo err >&2; exit 3"))
    assert (got.stdout, got.stderr) == (b"out\n", b"err\n")
    assert (got.end.report.code, got.end.report.signal) == (3, None)
    assert got.end.totals == {"stdout": 4, "stderr": 4}
    assert not got.end.deadline_hit
    assert 0 <= got.end.report.wall_s < 30


async def test_exit_by_signal(rig: Rig) -> None:
    got = await run_to_end(await rig.up(), rig.shell("kill -TERM $$"))
    assert (got.end.report.code, got.end.report.signal) == (None, signal.SIGTERM)


async def test_most_resident_memory(rig: Rig) -> None:
    got = await run_to_end(await rig.up(), rig.python("x = b'1' * (80 << 20)"))
    assert got.end.report.max_rss_bytes is not None
    assert 80 << 20 < got.end.report.max_rss_bytes < 200 << 20


async def test_environment_stdin_and_cwd_exactly_as_given(rig: Rig) -> None:
    link = await rig.up()
    command = Command(["/usr/bin/env"], {"A": "ä\udcff", "B": "x=y"}, cwd="/")
    got = await run_to_end(link, command)
    assert sorted(got.stdout.split(b"\n")) == [b"", b"A=\xc3\xa4\xff", b"B=x=y"]


async def test_stdin_is_given_then_closed(rig: Rig) -> None:
    text = os.urandom(300_000)
    got = await run_to_end(await rig.up(), rig.shell("pwd; cat", stdin=text))
    assert got.stdout == os.fsencode(rig.workspace) + b"\n" + text


async def test_child_has_its_own_session_no_descriptor_and_default_signals(rig: Rig) -> None:
    script = "import os,signal; print(os.getsid(0)==os.getpid(), sorted(map(int, os.listdir('/proc/self/fd'))))"
    got = await run_to_end(
        await rig.up(), rig.shell(f'/usr/bin/env python3 -I -c "{script}"; grep SigIgn /proc/self/status')
    )
    assert b"[0, 1, 2, 3]" in got.stdout  # 3 is the listing itself
    ignored = int(got.stdout.split(b"\n")[1].split()[1], 16)
    assert not ignored & 0x7FFFFFFF, "32 and 33 are the C library's own"


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["/no/such/program"], 127, b"No such file"),
        (["no-such-program"], 127, b"no-such-program"),
        (["/etc/passwd"], 126, b"Permission denied"),
    ],
)
async def test_a_program_that_cannot_start(rig: Rig, argv: list[str], code: int, message: bytes) -> None:
    got = await run_to_end(await rig.up(), Command(argv, {"PATH": PATH}, cwd="/"))
    assert got.end.report.code == code
    assert message in got.stderr
    assert got.end.totals["stderr"] == len(got.stderr)


async def test_start_is_idempotent(rig: Rig) -> None:
    link = await rig.up()
    command = rig.shell("echo once >> log; cat log")
    await link.start(command)
    await link.start(command)
    assert (await run_to_end(link, command)).stdout == b"once\n"


async def test_inside_deadline_kills_the_group(rig: Rig) -> None:
    started = time.monotonic()
    got = await run_to_end(await rig.up(), rig.shell("sleep 60 & echo $!; wait", deadline_s=0.3))
    assert got.end.deadline_hit
    assert got.end.report.signal == signal.SIGKILL
    assert time.monotonic() - started < 5
    assert is_dead(int(got.stdout))


@pytest.mark.fault(94)
async def test_a_background_child_does_not_delay_the_end(rig: Rig) -> None:
    started = time.monotonic()
    got = await run_to_end(await rig.up(), rig.shell("(sleep 30; echo late) & echo $!; exit 0"))
    took = time.monotonic() - started
    os.kill(int(got.stdout), signal.SIGKILL)
    assert got.end.report.code == 0
    assert got.end.report.wall_s < 1
    assert 1.5 < took < 3


async def test_what_a_background_child_writes_within_the_drain_is_kept(rig: Rig) -> None:
    got = await run_to_end(await rig.up(), rig.shell("(sleep 0.4; echo late) & exit 0"))
    assert got.stdout == b"late\n"


@pytest.mark.fault(94)
async def test_a_background_flood_does_not_delay_the_end(rig: Rig) -> None:
    started = time.monotonic()
    link = await rig.up()
    await link.start(rig.shell("setsid yes & exit 0"))
    async with asyncio.timeout(10):
        async for item in link.output():
            if isinstance(item, Frame):
                await link.ack(item.stream, item.offset + len(item.data))
    assert time.monotonic() - started < 3.5


@pytest.mark.fault(92)
async def test_bytes_pass_untouched(rig: Rig) -> None:
    data = bytes(range(256)) * 100 + b"\xed\xa0\x80\0\xff\xe2\x80\xa8"
    assert (await run_to_end(await rig.up(), rig.shell("cat", stdin=data))).stdout == data


@pytest.mark.fault(91)
async def test_a_line_of_fifty_megabytes(rig: Rig) -> None:
    got = await run_to_end(await rig.up(), rig.shell("head -c 50000000 /dev/zero | tr '\\0' x"))
    assert got.end.totals["stdout"] == 50_000_000
    assert got.stdout == b"x" * 50_000_000


@pytest.mark.fault(90)
async def test_a_flood_flows_with_flat_memory_on_both_sides(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("head -c 400000000 /dev/zero"))
    before, most, inside, total = resident_bytes("self"), 0, 0, 0
    async with asyncio.timeout(60):
        async for item in link.output():
            if isinstance(item, Frame):
                total += len(item.data)
                await link.ack(item.stream, item.offset + len(item.data))
                most = max(most, resident_bytes("self"))
                inside = max(inside, resident_bytes(rig.pid))
    assert total == 400_000_000
    assert most - before < 30 << 20
    assert inside < 40 << 20


async def test_a_full_ring_blocks_the_program_and_the_wait_is_counted(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("head -c 6000000 /dev/zero; touch written"))
    received = 0
    output = link.output()
    async with asyncio.timeout(20):
        while received < 4 << 20:
            item = await anext(output)
            assert isinstance(item, Frame)
            received += len(item.data)
    await asyncio.sleep(0.7)  # nothing acknowledged: the program stands
    assert not (rig.workspace / "written").exists()
    assert received == 4 << 20
    await link.ack("stdout", received)
    await output.aclose()
    got = await link_rest(rig)
    assert got == 6_000_000 - received
    assert (rig.workspace / "written").exists()


async def link_rest(rig: Rig) -> int:
    """Read what is left; the exit must own up to the time for which the host did not acknowledge."""
    link, total = rig.links[-1], 0
    async for item in link.output():
        if isinstance(item, Frame):
            total += len(item.data)
            await link.ack(item.stream, item.offset + len(item.data))
        else:
            assert 0.4 < item.waited_for_host_s < 5
    return total


async def test_the_deadline_moves_by_the_wait_and_the_next_link_is_told_of_it(rig: Rig) -> None:
    link = await rig.up()
    waits = "head -c 6000000 /dev/zero; touch written; sleep 1.5; touch rested; sleep 60"
    await link.start(rig.shell(waits, deadline_s=3.0))
    output, received = link.output(), 0
    while received < 4 << 20:
        item = await anext(output)
        assert isinstance(item, Frame)
        received += len(item.data)
    assert await link.waited_for_host_s() == 0
    await asyncio.sleep(2.5)  # nobody takes anything: without the wait it would end before it has rested
    await output.aclose()
    await link.close()
    successor = await rig.link()
    await successor.ack("stdout", received)
    reading = asyncio.create_task(to_exit(successor))
    assert 2.0 < await successor.waited_for_host_s() < 30
    exited = await asyncio.wait_for(reading, 40)
    assert (rig.workspace / "rested").exists()
    assert exited.deadline_hit  # and it comes all the same


async def to_exit(link: LauncherLink) -> Exited:
    async for item in link.output():
        if isinstance(item, Exited):
            return item
        await link.ack(item.stream, item.offset + len(item.data))
    raise AssertionError("no exit")


async def test_a_program_that_only_computes_waits_for_nobody(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("head -c 4194404 /dev/zero; sleep 0.5"))
    await asyncio.sleep(1)
    got = await run_to_end(link)
    assert got.end.waited_for_host_s < 0.1


async def test_output_before_start_waits_for_it(rig: Rig) -> None:
    link = await rig.up()
    task = asyncio.create_task(run_to_end(link))
    await asyncio.sleep(0.05)
    await link.start(rig.shell("echo here"))
    assert (await task).stdout == b"here\n"


async def test_a_lost_container_ends_the_output(rig: Rig) -> None:
    link = await rig.up()
    await link.start(rig.shell("echo here; sleep 20"))
    output = link.output()
    assert await anext(output) == Frame("stdout", 0, b"here\n")
    asyncio.get_running_loop().call_later(0.05, link.mark_lost, "the container died")
    with pytest.raises(LauncherLost, match="the container died"):
        await anext(output)
    with pytest.raises(LauncherLost):
        await link.start(rig.shell("true"))


async def test_a_killed_launcher_is_lost_after_the_grace(rig: Rig) -> None:
    await rig.up()
    await rig.links[0].close()
    link = await rig.link(reconnect_s=0.3)
    await link.start(rig.shell("sleep 1"))
    os.kill(rig.pid, signal.SIGKILL)
    with pytest.raises(LauncherLost):
        await run_to_end(link)
    await until(lambda: not link.connected)


async def test_no_launcher_at_all(rig: Rig) -> None:
    link = await rig.link(may_key=True, wait=False)
    with pytest.raises(LauncherLost):
        await link.wait_connected(0.05)


async def test_lines_that_follow_each_other_share_frames(rig: Rig) -> None:
    link = await rig.up()
    count = 600
    script = f"import time\nfor i in range({count}):\n    print(i, flush=True)\n    time.sleep(0.0005)\n"
    await link.start(rig.python(script))
    frames: list[Frame] = []
    async for item in link.output():
        if not isinstance(item, Frame):
            break
        frames.append(item)
        await link.ack(item.stream, item.offset + len(item.data))
    assert b"".join(f.data for f in frames) == b"".join(b"%d\n" % i for i in range(count))
    assert len(frames) < count / 2
    assert len(frames[0].data) < 100, "what comes after a pause is sent at once"

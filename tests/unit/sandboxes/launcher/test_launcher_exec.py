"""Tool calls."""

import asyncio
import time

import pytest

from service.sandboxes.contract import ExecResult, LauncherLost, ToolFailed
from service.sandboxes.docker.link import LauncherLink
from tests.unit.sandboxes.launcher.rig import Rig, is_dead, until


async def sh(link: LauncherLink, script: str, **options: float | int | str | None) -> ExecResult:
    timeout_s, limit = options.get("timeout_s", 20), options.get("limit_bytes", 1 << 20)
    call_id = options.get("call_id")
    assert isinstance(timeout_s, float | int)
    assert isinstance(limit, int)
    assert call_id is None or isinstance(call_id, str)
    return await link.exec(["sh", "-c", script], cwd="/", timeout_s=timeout_s, limit_bytes=limit, call_id=call_id)


async def test_result(rig: Rig) -> None:
    link = await rig.up()
    assert await sh(link, "echo o; echo e >&2; exit 7") == ExecResult(7, None, b"o\n", b"e\n")
    assert (await sh(link, "kill -9 $$")).signal == 9
    assert (await link.exec(["cat"], stdin=b"\0\xff" * 200_000, cwd="/")).stdout == b"\0\xff" * 200_000


async def test_environment(rig: Rig) -> None:
    link = await rig.up()
    own = await link.exec(["/usr/bin/env"], cwd="/")
    assert b"PATH=" in own.stdout
    assert (await link.exec(["/usr/bin/env"], cwd="/", env={"X": "1"})).stdout == b"X=1\n"
    assert (await link.exec(["env"], cwd="/", env={})).stdout == b""


async def test_output_over_the_limit_is_cut_and_marked(rig: Rig) -> None:
    link = await rig.up()
    result = await sh(link, "head -c 5000000 /dev/zero; echo rest >&2", limit_bytes=1000)
    assert (len(result.stdout), result.stderr, result.truncated, result.code) == (1000, b"rest\n", True, 0)
    assert not (await sh(link, "head -c 1000 /dev/zero", limit_bytes=1000)).truncated
    most = await sh(link, "head -c 9000000 /dev/zero", limit_bytes=1 << 30)
    assert (len(most.stdout), most.truncated) == (4 << 20, True)


async def test_time_out_kills_the_group(rig: Rig) -> None:
    link = await rig.up()
    started = time.monotonic()
    result = await sh(link, "sleep 30 & echo $!; wait", timeout_s=0.2)
    assert (result.signal, result.timed_out) == (9, True)
    assert is_dead(int(result.stdout))
    assert time.monotonic() - started < 2


@pytest.mark.fault(94)
async def test_a_background_child_does_not_delay_the_result(rig: Rig) -> None:
    link = await rig.up()
    started = time.monotonic()
    result = await sh(link, "sleep 3 & echo done")
    assert result.stdout == b"done\n"
    assert 0.4 < time.monotonic() - started < 1.5


@pytest.mark.parametrize("argv", [["/no/such"], ["no-such-program"]])
async def test_no_such_program(rig: Rig, argv: list[str]) -> None:
    link = await rig.up()
    with pytest.raises(ToolFailed) as caught:
        await link.exec(argv, cwd="/")
    assert caught.value.type == "no_such_program"
    with pytest.raises(ToolFailed):
        await link.exec(["true"], cwd="/no/such/folder")
    with pytest.raises(ToolFailed):
        await link.exec([], cwd="/")
    with pytest.raises(ToolFailed):
        await link.exec(["true", "nul\0"], cwd="/")
    with pytest.raises(ToolFailed):
        await link.exec(["true", "x" * (5 << 20)], cwd="/")
    with pytest.raises(ToolFailed):
        await link.exec(["cat"], stdin=bytes(5 << 20), cwd="/")
    with pytest.raises(ToolFailed) as caught:
        await link.exec(["true", "x" * 200_000], cwd="/")  # longer than the kernel takes
    assert caught.value.type == "not_started"


async def test_sixteen_at_a_time_and_more_in_line(rig: Rig) -> None:
    link = await rig.up()
    started = time.monotonic()
    results = await asyncio.gather(*(sh(link, f"sleep 0.5; echo {n}") for n in range(48)))
    assert [int(r.stdout) for r in results] == list(range(48))
    assert 0.9 < time.monotonic() - started < 4  # two rounds of 32


async def test_a_repeated_call_is_not_run_again(rig: Rig) -> None:
    link = await rig.up()
    script = f"echo x >> {rig.workspace}/runs; sleep 0.2; cat {rig.workspace}/runs"
    first, second = await asyncio.gather(sh(link, script, call_id="a"), sh(link, script, call_id="a"))
    assert first == second == await sh(link, script, call_id="a")
    assert first.stdout == b"x\n"
    await link.forget_call("a")
    with pytest.raises(ToolFailed) as caught:
        await sh(link, script, call_id="a")
    assert caught.value.type == "result_dropped"


async def test_a_running_call_survives_a_takeover(rig: Rig) -> None:
    former = await rig.up()
    script = f"echo x >> {rig.workspace}/runs; sleep 0.4; cat {rig.workspace}/runs"
    running = asyncio.create_task(sh(former, script, call_id="a"))
    await until((rig.workspace / "runs").exists)
    await former.close()
    with pytest.raises(LauncherLost):
        await running
    link = await rig.link()
    assert (await sh(link, script, call_id="a")).stdout == b"x\n"


async def test_results_are_bounded(rig: Rig) -> None:
    link = await rig.up()
    for n in range(70):
        await sh(link, f"echo {n}", call_id=f"call-{n}")
    assert (await sh(link, "false", call_id="call-69")).stdout == b"69\n"
    with pytest.raises(ToolFailed) as caught:
        await sh(link, "false", call_id="call-0")
    assert caught.value.type == "result_dropped"
    for n in range(6):
        await sh(link, "head -c 4000000 /dev/zero", limit_bytes=4 << 20, call_id=f"big-{n}")
    with pytest.raises(ToolFailed):
        await sh(link, "false", call_id="big-0")


@pytest.mark.fault(95)
async def test_a_thousand_calls_leave_nothing_behind(rig: Rig) -> None:
    link = await rig.up()
    await link.exec(["true"], cwd="/")
    before = (rig.descriptors(), rig.threads(), len(asyncio.all_tasks()))
    for _ in range(100):
        await asyncio.gather(*(link.exec(["true"], cwd="/") for _ in range(10)))
    assert (rig.descriptors(), rig.threads(), len(asyncio.all_tasks())) == before
    assert rig.zombies() == 0


async def test_what_a_call_used_is_measured(rig: Rig) -> None:
    link = await rig.up()
    usage = (await sh(link, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.1")).usage
    assert usage is not None
    assert 0 < usage.cpu_s <= usage.wall_s
    assert usage.wall_s >= 0.1
    assert usage.max_rss_bytes > 1 << 20


async def test_a_call_is_never_alone_outside_a_sandbox(rig: Rig) -> None:
    """It would end every process of its user: here that is a user of the whole machine."""
    link = await rig.up()
    with pytest.raises(ToolFailed) as raised:
        await link.exec(["true"], cwd="/", alone=True)
    assert raised.value.type == "not_alone"


async def test_output_comes_while_the_call_runs(rig: Rig) -> None:
    link = await rig.up()
    seen: list[tuple[str, bytes]] = []
    script = f"echo one; while [ ! -e {rig.workspace}/go ]; do sleep 0.01; done; echo two; echo err >&2"
    call = asyncio.create_task(
        link.exec(["sh", "-c", script], cwd="/", on_output=lambda stream, data: seen.append((stream, data)))
    )
    await until(lambda: seen == [("stdout", b"one\n")])
    assert not call.done()
    (rig.workspace / "go").touch()
    result = await call
    assert (result.stdout, result.stderr) == (b"one\ntwo\n", b"err\n")
    assert b"".join(data for stream, data in seen if stream == "stdout") == result.stdout
    assert b"".join(data for stream, data in seen if stream == "stderr") == result.stderr


async def test_followed_output_comes_once_over_a_lost_connection_and_up_to_the_limit(rig: Rig) -> None:
    link = await rig.up()
    got = bytearray()
    script = (
        f"head -c 700000 /dev/zero; while [ ! -e {rig.workspace}/go ]; do sleep 0.01; done; head -c 700000 /dev/zero"
    )
    call = asyncio.create_task(
        link.exec(["sh", "-c", script], cwd="/", limit_bytes=1 << 20, on_output=lambda _, data: got.extend(data))
    )
    await until(lambda: len(got) == 700_000)
    link.drop_connection()
    (rig.workspace / "go").touch()
    result = await call
    assert (len(got), len(result.stdout), result.truncated) == (1 << 20, 1 << 20, True)

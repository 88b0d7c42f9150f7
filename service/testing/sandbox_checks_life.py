"""Contract checks: start, output, exit, take-over, kill, destroy."""

import asyncio
import signal
import time

from service.domain.run_states import ContainerState
from service.sandboxes.contract import Command, Exited, Frame, LauncherLost, Sandbox, SandboxGone, SandboxRefused
from service.testing.sandbox_bench import ENV, Bench, CheckTable, MemorySink, drain, python, run

LIFE = CheckTable()


@LIFE.add()
async def start_is_idempotent(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        command = Command(["sh", "-c", "echo started >> output/count; sleep 0.3; cat output/count"], ENV)
        await sandbox.start(command)
        await sandbox.start(command)
        ran = await drain(sandbox)
        assert ran.stdout == b"started\n"
        await sandbox.start(command)
        assert (await drain(sandbox)).stdout == b"", "a repeat after the end must not start it again"


@LIFE.add()
async def output_has_two_streams_and_an_end(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        ran = await run(sandbox, ["sh", "-c", "echo out; echo err >&2; exit 7"])
        assert (ran.stdout, ran.stderr) == (b"out\n", b"err\n")
        assert (ran.end.report.code, ran.end.report.signal) == (7, None)
        assert dict(ran.end.totals) == {"stdout": 4, "stderr": 4}
        assert 0 <= ran.end.report.wall_s < 30


@LIFE.add()
async def a_signal_is_no_exit_code(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        ran = await run(sandbox, ["sh", "-c", "kill -9 $$"])
        assert (ran.end.report.code, ran.end.report.signal) == (None, 9)


@LIFE.add()
async def a_program_is_told_to_end_and_may_say_goodbye(bench: Bench) -> None:
    script = "trap 'echo bye; exit 5' INT; echo up; while :; do sleep 0.05; done"
    async with bench.sandbox() as sandbox:
        assert not await sandbox.signal(signal.SIGINT), "there is no program yet"
        await sandbox.start(Command(["sh", "-c", script], ENV))
        async with asyncio.timeout(30):
            frame = await anext(sandbox.output())
        assert isinstance(frame, Frame)
        assert await sandbox.signal(signal.SIGINT)
        ran = await drain(sandbox)
        assert (ran.end.report.code, ran.end.report.signal) == (5, None)
        assert ran.stdout == b"up\nbye\n"
        assert not await sandbox.signal(signal.SIGINT), "it has ended"


@LIFE.add()
async def a_missing_program_is_exit_127(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        ran = await run(sandbox, ["/no/such/program"])
        assert ran.end.report.code == 127
        assert ran.stderr


@LIFE.add()
async def stdin_is_given_then_closed(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        text = "grüße\n".encode() * 20_000
        ran = await run(sandbox, ["sh", "-c", "wc -c; echo closed"], stdin=text)
        assert ran.stdout.split() == [str(len(text)).encode(), b"closed"]


@LIFE.add()
async def environment_is_exactly_as_given(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["env"], {**ENV, "TOKEN": "a=b c"}))
        names = {line.partition(b"=")[0] for line in (await drain(sandbox)).stdout.splitlines()}
        assert {b"TOKEN", b"PATH"} <= names
        assert not {n for n in names if b"KEY" in n or b"WORKSTEAD" in n}


@LIFE.add(92)
async def output_bytes_are_untouched(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        code = "import os; os.write(1, bytes(range(256)) * 300 + b'\\xed\\xa0\\x80\\x00\\xe2\\x80\\xa8')"
        ran = await run(sandbox, ["python3", "-c", code])
        assert ran.stdout == bytes(range(256)) * 300 + b"\xed\xa0\x80\x00\xe2\x80\xa8"


@LIFE.add(91)
async def a_long_line_arrives_whole(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        size = 50 << 20
        code = f"import sys; sys.stdout.buffer.write('é'.encode() * {size // 2})"
        ran = await run(sandbox, ["python3", "-c", code])
        assert len(ran.stdout) == size
        assert ran.stdout == "é".encode() * (size // 2)


@LIFE.add(94)
async def end_does_not_wait_for_background_children(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        began = time.monotonic()
        ran = await run(sandbox, ["sh", "-c", "sleep 60 & echo $!; exit 3"])
        assert ran.end.report.code == 3
        assert time.monotonic() - began < 3.5


@LIFE.add()
async def unacknowledged_output_stops_the_program(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        code = "import os\nfor i in range(160):\n os.write(1, b'x' * 65536)\nopen('output/done', 'w')"
        await sandbox.start(Command(["python3", "-c", code], ENV))
        await asyncio.sleep(1)
        there = await python(sandbox, "import os; print(os.path.exists('output/done'))")
        assert there.strip() == "False", "10 MiB went through without an acknowledgement"
        ran = await drain(sandbox)
        assert ran.totals["stdout"] == 160 * 65536
        assert ran.end.report.code == 0


@LIFE.add()
async def another_worker_goes_on_without_loss(bench: Bench) -> None:
    first = await bench.reopen()
    sandbox = await first.make(bench.spec)
    try:
        code = "import time\nfor i in range(400):\n print(i, flush=True); time.sleep(0.003)"
        await sandbox.start(Command(["python3", "-c", code], ENV))
        text = await _read_some(sandbox)
        await first.close()
        second = await bench.reopen()
        again = await second.attach(sandbox.id)
        await again.start(Command(["python3", "-c", code], ENV))
        async for item in again.output():
            if isinstance(item, Exited):
                break
            assert item.offset == len(text), "lost or doubled"
            text += item.data
            await again.ack(item.stream, len(text))
        assert text == b"".join(b"%d\n" % i for i in range(400))
        await again.destroy()
        await second.close()
    finally:
        await bench.backend.remove(sandbox.id)


async def _read_some(sandbox: Sandbox) -> bytes:
    """Acknowledge some frames and read one more, as a worker that dies between a frame and its acknowledgement."""
    text, seen = b"", 0
    async for item in sandbox.output():
        assert not isinstance(item, Exited)
        seen += 1
        if seen > 20:
            break
        text += item.data
        await sandbox.ack(item.stream, len(text))
    return text


@LIFE.add()
async def inspect_says_running_then_exited(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        report = await sandbox.inspect()
        assert report.state is ContainerState.RUNNING
        assert not report.engine_restarted
        assert (await sandbox.kill()).state is ContainerState.EXITED
        again = await sandbox.kill()
        assert (again.state, again.engine_restarted) == (ContainerState.EXITED, False)


@LIFE.add()
async def kill_ends_output_and_calls(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["sleep", "600"], ENV))
        reading = asyncio.create_task(drain(sandbox))
        calling = asyncio.create_task(sandbox.exec(["sleep", "600"], env=ENV, timeout_s=600))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await sandbox.kill()
        results = await asyncio.gather(reading, calling, return_exceptions=True)
        assert all(isinstance(r, (LauncherLost, asyncio.CancelledError)) for r in results), results
        assert time.monotonic() - began < 5
        try:
            await sandbox.exec(["true"], env=ENV)
        except LauncherLost:
            return
        raise AssertionError("a dead sandbox served a call")


@LIFE.add()
async def a_live_sandbox_is_not_collected(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        try:
            await sandbox.collect(["output"], bench.spec.limits, MemorySink())
        except SandboxRefused:
            return
        raise AssertionError("collected from a live sandbox")


@LIFE.add(102)
async def destroy_leaves_nothing_and_may_be_repeated(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        assert sandbox.id in await bench.backend.list_ids()
        await sandbox.destroy()
        await sandbox.destroy()
        await bench.backend.remove(sandbox.id)
        assert sandbox.id not in await bench.backend.list_ids()
        assert (await sandbox.inspect()).state is ContainerState.GONE
        try:
            await bench.backend.attach(sandbox.id)
        except SandboxGone:
            return
        raise AssertionError("attached to a destroyed sandbox")


@LIFE.add()
async def pause_stops_and_unpause_goes_on(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        code = "import time\nfor i in range(20):\n print(i, flush=True); time.sleep(0.05)"
        await sandbox.start(Command(["python3", "-c", code], ENV))
        await asyncio.sleep(0.2)
        await sandbox.pause()
        began = time.monotonic()
        await asyncio.sleep(1.5)
        assert (await sandbox.inspect()).state is ContainerState.RUNNING
        await sandbox.unpause()
        ran = await drain(sandbox)
        assert len(ran.stdout.split()) == 20
        assert time.monotonic() - began > 1.4


@LIFE.add()
async def a_paused_one_is_killed_at_once(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["sleep", "60"], ENV))
        await sandbox.pause()
        began = time.monotonic()
        assert (await sandbox.kill()).state is ContainerState.EXITED
        assert time.monotonic() - began < 5

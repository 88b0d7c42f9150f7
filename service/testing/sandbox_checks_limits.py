"""Contract checks of limits: memory, processes, disk, scratch, floods. Not for the memory fake."""

import asyncio
import resource
import time
from pathlib import Path

from service.domain.limits import MIB
from service.domain.run_states import ContainerState
from service.sandboxes.contract import Command, Exited, LauncherLost, Sandbox
from service.testing.sandbox_bench import (
    ENV,
    Bench,
    CheckTable,
    by_path,
    delivered,
    drain,
    open_descriptors,
    python,
    run,
)

LIMITS = CheckTable()
RUNC = ("runc",)

_HOG = "x = bytearray(1 << 20)\nl = []\nwhile True: l.append(bytearray(8 << 20))"


async def _oom_kills(sandbox: Sandbox) -> int:
    before = (await sandbox.inspect()).oom_kills
    return max(before, (await sandbox.kill()).oom_kills)


async def _to_the_end(sandbox: Sandbox) -> Exited | None:
    """Return the program's exit, or null if the sandbox died under it."""
    try:
        return (await drain(sandbox)).end
    except LauncherLost:
        return None


@LIMITS.add(84, 114, semantic=False)
async def a_program_over_memory_is_counted(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["python3", "-c", _HOG], ENV))
        reading = asyncio.create_task(_to_the_end(sandbox))
        for _ in range(300):
            report = await sandbox.inspect()
            if report.oom_kills or report.state is not ContainerState.RUNNING:
                break
            await asyncio.sleep(0.1)
        async with asyncio.timeout(5):
            end = await reading
        assert end is None or end.report.signal == 9
        assert await _oom_kills(sandbox) >= 1


@LIMITS.add(84, semantic=False)
async def a_shell_that_hides_it_is_counted(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["sh", "-c", f"python3 -c '{_HOG}'; echo said $?; exit 0"], ENV))
        async with asyncio.timeout(30):
            await _to_the_end(sandbox)
        assert await _oom_kills(sandbox) >= 1


@LIMITS.add(84, semantic=False)
async def a_tool_over_memory_is_counted(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        try:
            done = await sandbox.exec(["python3", "-c", _HOG], env=ENV, timeout_s=30)
            assert done.signal == 9
        except LauncherLost:
            pass
        report = await sandbox.inspect()
        assert report.oom_kills >= 1, "known while it still runs, not only after its end"
        assert await _oom_kills(sandbox) >= 1


@LIMITS.add(84, semantic=False)
async def many_processes_over_memory_are_counted(bench: Bench) -> None:
    code = (
        "import os, time\nfor i in range(12):\n if os.fork() == 0:\n  b = bytearray(40 << 20)\n  time.sleep(20); os._exit(0)\n"
        "for i in range(12): os.wait()"
    )
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["python3", "-c", code], ENV))
        reading = asyncio.create_task(_to_the_end(sandbox))
        for _ in range(100):
            if (await sandbox.inspect()).oom_kills:
                break
            await asyncio.sleep(0.2)
        assert await _oom_kills(sandbox) >= 1
        await asyncio.gather(reading, return_exceptions=True)


@LIMITS.add(semantic=False)
async def killing_oneself_is_not_running_out_of_memory(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["sh", "-c", "sleep 0.3; kill -9 -1"], ENV))
        async with asyncio.timeout(20):
            await _to_the_end(sandbox)
        report = await sandbox.inspect()
        assert report.oom_kills == 0
        assert not report.engine_restarted


@LIMITS.add(83, semantic=False)
async def a_fork_bomb_hits_its_limit_and_dies_at_once(bench: Bench) -> None:
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    async with bench.sandbox() as bystander, bench.sandbox(pids=64) as sandbox:
        quiet = await _latency(bystander)
        await sandbox.start(Command(["python3", "-c", bomb], ENV))
        await asyncio.sleep(1)
        beside = await _latency(bystander)
        began = time.monotonic()
        report = await sandbox.kill()
        assert report.state is ContainerState.EXITED
        assert time.monotonic() - began < 3
        # Ratio with a floor: a call takes a millisecond, and the machine has two cores.
        assert beside < max(4 * quiet, 0.05), (quiet, beside)


async def _latency(sandbox: Sandbox) -> float:
    times: list[float] = []
    for _ in range(20):
        began = time.monotonic()
        await sandbox.exec(["true"], env=ENV)
        times.append(time.monotonic() - began)
    return sorted(times)[len(times) // 2]


@LIMITS.add(83, semantic=False, runtimes=RUNC)
async def processes_are_limited(bench: Bench) -> None:
    code = (
        "import os, time\nn = 0\ntry:\n while n < 500:\n  if os.fork() == 0: time.sleep(30); os._exit(0)\n  n += 1\n"
        "except OSError: pass\nprint(n)"
    )
    async with bench.sandbox(pids=64) as sandbox:
        assert int(await python(sandbox, code)) < 64


@LIMITS.add(86, semantic=False)
async def a_full_workspace_is_enospc_and_the_files_stay(bench: Bench) -> None:
    code = """
import errno, os
open('/workspace/output/before', 'w').write('kept')
n = 0
try:
    with open('/workspace/fill', 'wb', buffering=0) as f:
        while True: n += f.write(bytes(1 << 20))
except OSError as e: print(errno.errorcode[e.errno], n >> 20)
os.unlink('/workspace/fill'); open('/workspace/output/after', 'w').write('kept')
"""
    async with bench.sandbox(disk_bytes=64 * MIB) as sandbox:
        word, size = (await python(sandbox, code)).split()
        assert word in ("ENOSPC", "EFBIG")
        assert 40 <= int(size) <= 64
        found = by_path(await delivered(sandbox))
        assert {"output/before", "output/after"} <= set(found)


@LIMITS.add(86, semantic=False)
async def many_files_fill_the_workspace_too(bench: Bench) -> None:
    code = """
import errno
try:
    for i in range(200):
        with open(f'/workspace/f{i}', 'wb', buffering=0) as f: f.write(bytes(1 << 20))
except OSError as e: print(errno.errorcode[e.errno], i)
"""
    async with bench.sandbox(disk_bytes=64 * MIB) as sandbox:
        word, count = (await python(sandbox, code)).split()
        assert word == "ENOSPC"
        assert int(count) <= 64


@LIMITS.add(87, semantic=False)
async def inodes_are_limited(bench: Bench) -> None:
    code = """
import errno
try:
    for i in range(30000): open(f'/workspace/i{i}', 'w').close()
except OSError as e: print(errno.errorcode[e.errno], i)
"""
    async with bench.sandbox(inodes=4000) as sandbox:
        word, count = (await python(sandbox, code)).split()
        assert word == "ENOSPC"
        assert int(count) <= 4200


@LIMITS.add(88, semantic=False)
async def full_scratch_kills_nobody(bench: Bench) -> None:
    code = """
import errno, os
for top in ('/tmp', '/var/tmp', '/dev/shm', '/run', '/dev/mqueue', '/workspace/.home'):
    try:
        with open(top + '/fill', 'wb', buffering=0) as f:
            while True: f.write(bytes(1 << 20))
    except OSError as e: print(top, errno.errorcode[e.errno])
print('alive')
"""
    async with bench.sandbox() as sandbox:
        await sandbox.write_file("output/first", b"kept")
        assert (await python(sandbox, code)).split()[-1] == "alive"
        report = await sandbox.inspect()
        assert (report.state, report.oom_kills) == (ContainerState.RUNNING, 0)
        assert "output/first" in by_path(await delivered(sandbox))


@LIMITS.add(90, semantic=False)
async def a_gigabyte_of_output_costs_no_memory(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        before = _peak_rss()
        ran = await run(sandbox, ["sh", "-c", f"yes | head -c {1 << 30}"], keep=0)
        assert ran.totals["stdout"] == 1 << 30
        assert ran.end.report.code == 0
        assert _peak_rss() - before < 50 * MIB


def _peak_rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@LIMITS.add(semantic=False)
async def samples_come_from_the_host(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(sandbox, "open('/workspace/x', 'wb').write(bytes(8 << 20)); import os; os.sync()")
        sample = await sandbox.sample()
        assert sample is not None
        assert sample.memory_bytes > 0
        assert sample.cpu_s > 0
        assert sample.oom_kills == 0
        await sandbox.kill()
        assert await sandbox.sample() is None


@LIMITS.add(102, semantic=False)
async def no_process_thread_or_descriptor_is_left(bench: Bench) -> None:
    async with bench.sandbox() as warm_up:
        await run(warm_up, ["true"])
    descriptors, threads = _own_counts()
    for _ in range(3):
        async with bench.sandbox() as sandbox:
            await run(sandbox, ["true"])
            await delivered(sandbox)
    after = _own_counts()
    assert after[0] <= descriptors + 2
    assert after[1] <= threads + 16


def _own_counts() -> tuple[int, int]:
    return open_descriptors(), len(list(Path("/proc/self/task").iterdir()))

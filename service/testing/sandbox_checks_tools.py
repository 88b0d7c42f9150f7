"""Contract checks: tool calls and files."""

import asyncio
import tempfile
import time
from pathlib import Path

from service.sandboxes.contract import Command, FileSource, ToolFailed
from service.testing.sandbox_bench import ENV, Bench, CheckTable, drain, open_descriptors, python

TOOLS = CheckTable()


@TOOLS.add()
async def exec_returns_both_streams_and_the_exit(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        done = await sandbox.exec(["sh", "-c", "cat; echo err >&2; exit 5"], stdin=b"in\xff\x00", env=ENV)
        assert (done.code, done.signal) == (5, None)
        assert (done.stdout, done.stderr) == (b"in\xff\x00", b"err\n")
        assert not done.truncated
        assert not done.timed_out


@TOOLS.add()
async def exec_runs_beside_the_program(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.start(Command(["sh", "-c", "while [ ! -e output/go ]; do sleep 0.05; done; echo seen"], ENV))
        assert (await sandbox.exec(["touch", "output/go"], env=ENV)).code == 0
        assert (await drain(sandbox)).stdout == b"seen\n"


@TOOLS.add()
async def exec_output_over_the_limit_is_cut_and_marked(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        code = "print('x' * 300000)"
        done = await sandbox.exec(["python3", "-c", code], env=ENV, limit_bytes=1000)
        assert (done.code, len(done.stdout), done.truncated) == (0, 1000, True)


@TOOLS.add()
async def exec_over_its_time_is_killed_and_marked(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        began = time.monotonic()
        done = await sandbox.exec(["sh", "-c", "echo before; sleep 60"], env=ENV, timeout_s=1)
        assert done.timed_out
        assert done.stdout == b"before\n"
        assert time.monotonic() - began < 5


@TOOLS.add()
async def a_repeated_call_id_is_not_run_again(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        argv = ["sh", "-c", "echo run >> output/runs; sleep 0.5; wc -l < output/runs"]
        both = [sandbox.exec(argv, env=ENV, call_id="same") for _ in range(2)]
        results = await asyncio.gather(*both)
        assert [r.stdout.strip() for r in results] == [b"1", b"1"]
        assert (await python(sandbox, "print(len(open('output/runs').readlines()))")).strip() == "1"


@TOOLS.add()
async def a_missing_tool_is_said(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        try:
            done = await sandbox.exec(["/no/such/tool"], env=ENV)
        except ToolFailed:
            return
        assert done.code == 127


@TOOLS.add(95)
async def many_calls_leak_nothing(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        before = open_descriptors()
        count = 1000 if "memory" not in str(sandbox.attestation.get("workspace")) else 100
        for _ in range(count // 10):
            results = await asyncio.gather(*(sandbox.exec(["true"], env=ENV) for _ in range(10)))
            assert all(r.code == 0 for r in results)
        assert open_descriptors() <= before + 4
        alive = await python(sandbox, "import os; print(sum(p.isdigit() for p in os.listdir('/proc')))")
        assert int(alive) < 10 or count == 100, f"{alive.strip()} processes are left inside"


@TOOLS.add()
async def files_are_there_before_the_program(bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder) / "big"
        big.write_bytes(bytes(range(256)) * 40_000)
        files = [
            FileSource("data/deep/er/numbers.csv", b"a,b\n1,2\n"),
            FileSource("big.bin", file=big),
            FileSource("grüße 日本.txt", b""),
            FileSource("run.sh", b"#!/bin/sh\nwc -c < big.bin; cat data/deep/er/numbers.csv; ls\n", mode=0o755),
        ]
        async with bench.sandbox() as sandbox:
            await sandbox.write_files(files)
            await sandbox.start(Command(["./run.sh"], ENV))
            lines = (await drain(sandbox)).stdout.decode().split("\n")
            assert lines[:3] == ["10240000", "a,b", "1,2"]
            assert {"grüße 日本.txt", "output", "data"} <= set(lines)


@TOOLS.add()
async def files_belong_to_the_agent(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.write_files([FileSource("in/a.txt", b"old")])
        said = await python(
            sandbox, "open('in/a.txt', 'a').write('+'); open('in/b', 'w'); print(open('in/a.txt').read())"
        )
        assert said.strip() == "old+"


@TOOLS.add()
async def files_are_read_and_written_while_it_runs(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        body = bytes(range(256)) * 5000
        await sandbox.write_file("output/made/x.bin", body)
        assert await sandbox.read_file("output/made/x.bin") == body
        assert (await python(sandbox, "import os; print(os.path.getsize('output/made/x.bin'))")).strip() == "1280000"


@TOOLS.add()
async def bad_reads_and_writes_are_refused(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(sandbox, "open('output/large', 'wb').write(bytes(100000))")
        attempts = [
            sandbox.read_file("output/none"),
            sandbox.read_file("output"),
            sandbox.read_file("../etc/passwd"),
            sandbox.read_file("output/large", limit_bytes=1000),
            sandbox.write_file("../out", b""),
            sandbox.write_file("output", b""),
        ]
        results = await asyncio.gather(*attempts, return_exceptions=True)
        assert all(isinstance(r, ToolFailed) for r in results), results


@TOOLS.add()
async def the_deadline_is_announced(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.announce_deadline(90)
        assert await python(sandbox, "print(len(open('.home/deadline').read()) > 2)") == "True\n"

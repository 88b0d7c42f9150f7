"""The lifecycle on the real engine: forged and hostile endings move no verdict and buy no attempt."""

import asyncio
import os
from pathlib import Path

import pytest

from service.domain.run_states import EndedBecause, Flag, Outcome
from tests.integration.lifecycle.docker_stage import DockerStage, docker
from tests.integration.lifecycle.stage import RIGHT

__all__ = ["docker"]
pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

WRITE = f"import json; json.dump({RIGHT!r}, open('output/answers.json', 'w'));"
SMALL = {"memory_bytes": 256 << 20, "wall_clock_s": 60}


@pytest.mark.parametrize(
    ("code", "cause", "score"),
    [
        (WRITE + "print('done')", EndedBecause.COMPLETED, 2.0),
        (WRITE + "import os; os.kill(-1, 9)", EndedBecause.AGENT_KILLED_SANDBOX, 2.0),
        ("import os; os.kill(-1, 9)", EndedBecause.AGENT_KILLED_SANDBOX, 0.0),
        ("x = bytearray(4 << 30)", EndedBecause.MEMORY_LIMIT, 0.0),
        ("raise SystemExit(137)", EndedBecause.SCAFFOLD_ERROR, 0.0),
        (
            "import os; os.rmdir('output'); os.symlink('/workspace/.home', 'output')",
            EndedBecause.COLLECTION_REFUSED,
            0.0,
        ),
    ],
)
@pytest.mark.fault(84)
async def test_an_ending_is_the_agents_whatever_it_does(
    docker: DockerStage, code: str, cause: EndedBecause, score: float
) -> None:
    row = await docker.run(code, limits=SMALL)
    assert (row.outcome, row.ended_because, row.score, row.attempt) == (Outcome.GRADED, cause, score, 1)


async def test_an_orphan_that_writes_after_the_exit_is_cut_off(docker: DockerStage) -> None:
    """The right answer arrives three seconds after the program's end: too late, whoever writes it."""
    orphan = f"import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(3.5)\n    {WRITE}\n    os._exit(0)"
    row = await docker.run(orphan)
    assert (row.ended_because, row.score) == (EndedBecause.COMPLETED, 0.0)


async def test_an_orphan_that_writes_after_the_deadline_is_cut_off(docker: DockerStage) -> None:
    late = f"import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(4)\n    {WRITE}\ntime.sleep(60)"
    row = await docker.run(late, limits={"wall_clock_s": 2})
    assert (row.ended_because, row.score) == (EndedBecause.WALL_CLOCK, 0.0)
    assert row.wall_s is not None
    assert 2 <= row.wall_s < 3.5


@pytest.mark.fault(94)
async def test_a_background_child_does_not_hold_the_run(docker: DockerStage) -> None:
    row = await docker.run(WRITE + "import subprocess; subprocess.Popen(['sleep', '100'])")
    assert (row.ended_because, row.score) == (EndedBecause.COMPLETED, 2.0)
    assert row.wall_s is not None
    assert row.wall_s < 4


def rss_bytes() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.fault(90)
@pytest.mark.slow
async def test_a_gigabyte_of_output_is_flat_in_memory(docker: DockerStage) -> None:
    await docker.run("print('warm up')", "small")
    before = peak = rss_bytes()

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, rss_bytes())
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    flood = "import sys\nfor _ in range(16384): sys.stdout.write('y\\n' * 32768)"
    row = await docker.run(flood, "flood", {"wall_clock_s": 250})
    watching.cancel()
    assert peak - before < 50 << 20
    assert row.ended_because is EndedBecause.COMPLETED
    assert Flag.OUTPUT_TRUNCATED in row.flags
    (mark,) = await docker.stage.events(row.id, "output.truncated")
    assert mark.payload["kept_bytes"] <= 16 << 20
    closed = {e.payload["stream"]: e.payload for e in await docker.stage.events(row.id, "output.closed")}
    assert closed["stdout"]["total_bytes"] == 1 << 30
    assert closed["stdout"]["log_bytes"] == 256 << 20

"""``code_tests``: 4 460 tests of 1 115 programs, a fresh sandbox for each program, against a container for each test.

Both sides take turns, so that whatever else this machine does hits both; the baseline's fewer runs are scaled.
"""

import asyncio
import io
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.verdicts import Verdict
from service.graders.contract import GradingInput
from service.graders.test_cases.grader import TestCasesGrader
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from tests.bench.docker_cli import profile_options
from tests.bench.report import Result

EACH = 4
PROGRAM = b"print(2 * int(input()))\n"
TESTS = [{"id": str(n), "input": f"{n}\n", "expected": f"{2 * n}\n"} for n in range(EACH)]
ROUNDS = 5


def code_tests(programs: int = 1115, runs: int = 200, at_once: int = 4, runtime: str = "runc") -> Result:
    ours, theirs = asyncio.run(_measure(programs, runs, at_once, runtime))
    tests = programs * EACH
    scaled = theirs * tests / runs
    detail = {"tests": tests, "programs": programs, "runs": runs, "at_once": at_once, "runtime": runtime}
    return Result("code_tests", ours, "s", scaled, ours / scaled, "≤ 0.2", detail)


def code_tests_isolated(programs: int = 1115, runs: int = 200) -> Result:
    """The same on gVisor, which is what the service takes where the host has it."""
    return code_tests(programs, runs, runtime="runsc-planted")


async def _measure(programs: int, runs: int, at_once: int, runtime: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as folder:
        async with open_rooms(Path(folder), "wsbench", RoomsConfig(at_once, (runtime,))) as rooms:
            assert rooms is not None
            image = await rooms.backend.resolve_image("code_exec")
            await _grade(rooms)  # what is found out once per process
            ours = theirs = 0.0
            for turn in range(ROUNDS):
                ours += await _series(_share(programs, turn), at_once, lambda: _grade(rooms))
                theirs += await _series(_share(runs, turn), at_once, lambda: _docker_run(image, runtime))
            return ours, theirs


def _share(total: int, turn: int) -> int:
    return total // ROUNDS + (turn < total % ROUNDS)


async def _series(times: int, at_once: int, work: Callable[[], Awaitable[None]]) -> float:
    left = iter(range(times))

    async def one_after_the_other() -> None:
        for _ in left:
            await work()

    began = time.perf_counter()
    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    return time.perf_counter() - began


async def _grade(rooms: EngineRooms) -> None:
    entry = ArtifactEntry("output/solution.py", EntryKind.FILE, len(PROGRAM), "a" * 64)
    hidden = json.dumps({"tests": TESTS}).encode()
    given = GradingInput({}, [entry], lambda _: io.BytesIO(hidden), lambda _: io.BytesIO(PROGRAM), rooms=rooms)
    verdict: Verdict = await TestCasesGrader().grade(given)
    assert verdict.score == EACH, verdict


async def _docker_run(image: str, runtime: str) -> None:
    command: Sequence[str] = [
        "docker", "run", "--rm", "-i", f"--runtime={runtime}", *profile_options(), image,
        "/usr/bin/python3", "-s", "-c", PROGRAM.decode(),
    ]  # fmt: skip
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    out, _ = await process.communicate(b"21\n")
    assert out == b"42\n", out

"""Grading method ``test_cases`` on a real engine: right, wrong and hostile programs, each with its typed cause."""

import asyncio
import io
import json
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.limits import MIB
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import GradingInput
from service.graders.test_cases.grader import TestCasesGrader
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from tests.needs import missing

pytestmark = pytest.mark.asyncio(loop_scope="session")
DOUBLE = [{"id": f"t{n}", "input": f"{n}\n", "expected": f"{2 * n}\n"} for n in (3, 8)]
RIGHT = "print(2 * int(input()))"


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["runc", "runsc-planted"])
async def rooms(request: pytest.FixtureRequest) -> AsyncIterator[EngineRooms]:
    data = Path(tempfile.mkdtemp(prefix="workstead-rooms-"))
    async with open_rooms(data, f"tests-{uuid.uuid4().hex[:8]}", RoomsConfig(4, (request.param,))) as made:
        if made is None:
            missing("no engine")
        check = await made.backend.offered_runtimes()
        if request.param not in check:
            pytest.skip(f"{request.param} is not offered here")
        yield made
    shutil.rmtree(data)


async def grade(
    rooms: EngineRooms, program: str | bytes, tests: Sequence[dict[str, Any]] = DOUBLE, **settings: Any
) -> Verdict:
    data = program.encode() if isinstance(program, str) else program
    language = settings.get("language", "python")
    name = f"output/solution.{ {'python': 'py', 'node': 'js', 'ruby': 'rb', 'perl': 'pl', 'bash': 'sh'}.get(language, language) }"
    given = GradingInput(
        {"per_test_s": 5, "memory_bytes": 128 * MIB, **settings},
        [ArtifactEntry(name, EntryKind.FILE, len(data), "a" * 64)],
        lambda _: io.BytesIO(json.dumps({"tests": list(tests)}).encode()),
        lambda _: io.BytesIO(data),
        rooms=rooms,
    )
    async with asyncio.timeout(120):
        verdict = await TestCasesGrader().grade(given)
    assert verdict.state is VerdictState.GRADED
    return verdict


def causes(verdict: Verdict) -> list[str | None]:
    return [c["cause"] for c in verdict.criteria]


async def test_right(rooms: EngineRooms) -> None:
    verdict = await grade(rooms, RIGHT)
    assert (verdict.score, verdict.max_score, verdict.detail["solved"], verdict.detail["rooms"]) == (2, 2, True, 1)
    for c in verdict.criteria:
        assert (c["detail"]["exit_code"], c["detail"]["stdout_bytes"]) in ((0, 2), (0, 3))
        assert 0 < c["detail"]["cpu_s"] < 5
        assert 0 < c["detail"]["wall_s"] < 5


@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("node", "console.log(2 * Number(require('fs').readFileSync(0)))"),
        ("php", "<?php echo 2 * intval(fgets(STDIN)), PHP_EOL;"),
        ("ruby", "puts 2 * gets.to_i"),
        ("perl", 'print 2 * <STDIN>, "\\n"'),
        ("bash", "read -r n; echo $((2 * n))"),
    ],
)
async def test_every_language_runs_and_tells_a_program_from_words(
    rooms: EngineRooms, language: str, program: str
) -> None:
    assert (await grade(rooms, program, language=language)).score == 2
    broken = await grade(rooms, "if ( then {{{ (", language=language)
    if language != "php":  # any text is a program there
        assert causes(broken) == ["compile_error"] * 2


KILLERS = {
    "wrong": ("print(7)", "wrong_answer"),
    "nothing": ("input()", "no_output"),
    "words": ("Here is my solution: it doubles.", "compile_error"),
    "raises": ("raise SystemExit(3)", "crash"),
    "segfault": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crash"),
    "sleeps": ("import time; time.sleep(60)", "timeout"),
    "sleeps after closing its output": (
        f"import os, time; {RIGHT}; os.sys.stdout.flush(); os.close(1); os.close(2); time.sleep(60)", "timeout",
    ),
    "floods": ("while True: print('x' * 65536)", "output_limit"),
    "hoards": ("x = bytearray()\nwhile True: x += b'x' * (1 << 20)", "memory_limit"),
    "kills its launcher": ("import os\nfor p in os.listdir('/proc'):\n  if p.isdigit() and p not in ('1', str(os.getpid())):\n    os.kill(int(p), 9)\nimport time; time.sleep(30)", "runner_killed"),
    "kills everything": ("import os; print(2 * int(input()), flush=True); os.kill(-1, 9); import time; time.sleep(30)", "runner_killed"),
    "leaves a process": ("import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(1); print(2 * int(input())); os._exit(0)", "processes_left"),
    "not text": ("import os; os.write(1, b'\\xff\\x00\\xfe')", "wrong_answer"),
}  # fmt: skip


@pytest.mark.fault(82)
@pytest.mark.parametrize("name", KILLERS)
async def test_a_program_that_fails_has_a_typed_cause(rooms: EngineRooms, name: str) -> None:
    program, cause = KILLERS[name]
    limit = 2 if cause == "timeout" else 10
    began = time.monotonic()
    verdict = await grade(rooms, program, per_test_s=limit)
    print(name, round(time.monotonic() - began, 2), [c["detail"] for c in verdict.criteria], verdict.detail["rooms"])
    assert (causes(verdict), verdict.score) == ([cause] * 2, 0)

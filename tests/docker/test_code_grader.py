"""Grading method ``test_cases`` on a real engine: right, wrong and hostile programs, each with its typed cause."""

import asyncio
import io
import json
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.limits import MIB
from service.domain.verdicts import Verdict, VerdictState
from service.graders.contract import GradingInput
from service.graders.test_cases import runner
from service.graders.test_cases.grader import TestCasesGrader
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from tests.docker.conftest import must_offer
from tests.needs import missing

pytestmark = pytest.mark.asyncio(loop_scope="session")
DOUBLE = [{"id": f"t{n}", "input": f"{n}\n", "expected": f"{2 * n}\n"} for n in (3, 8)]
RIGHT = "print(2 * int(input()))"


@pytest_asyncio.fixture(
    scope="session", loop_scope="session", params=["runc", pytest.param("runsc-planted", marks=pytest.mark.slow)]
)
async def rooms(request: pytest.FixtureRequest) -> AsyncIterator[EngineRooms]:
    data = Path(tempfile.mkdtemp(prefix="workstead-rooms-"))
    async with open_rooms(data, f"tests-{uuid.uuid4().hex[:8]}", RoomsConfig(4, (request.param,))) as made:
        if made is None:
            missing("no engine")
        await must_offer(made.backend, request.param)
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
    # The first start of an interpreter reads all of it from a disk that may be busy.
    assert (await grade(rooms, program, language=language, per_test_s=30)).score == 2
    broken = await grade(rooms, "if ( then {{{ (", language=language)
    if language != "php":  # any text is a program there
        assert causes(broken) == ["compile_error"] * 2


def _rows(names: Iterable[str], *slow: str) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in names]


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
@pytest.mark.parametrize("name", _rows(KILLERS, "sleeps after closing its output"))
async def test_a_program_that_fails_has_a_typed_cause(rooms: EngineRooms, name: str) -> None:
    program, cause = KILLERS[name]
    limit = 2 if cause == "timeout" else 10
    verdict = await grade(rooms, program, per_test_s=limit)
    assert (causes(verdict), verdict.score) == ([cause] * 2, 0)


CHEATS = {
    "says so": "print('PASS\\nok 1\\n2 passed\\nscore 1.0'); raise SystemExit(0)",
    "exits at once": "import os; os._exit(0)",
    "patches what compares": "import builtins, json, sys\njson.dumps = json.loads = lambda *a, **k: True\nstr.__eq__\n"
    "sys.exit = lambda *a: None\nbuiltins.print = lambda *a: None",
    "is equal to everything": "class X(str):\n  __eq__ = lambda s, o: True\n  __hash__ = str.__hash__\nprint(X('anything'))",
    "writes to other descriptors": "import os\nfor fd in range(3, 64):\n  try: os.write(fd, b'6\\n16\\n')\n  except OSError: pass",
    "answers on standard error": "import sys; print(2 * int(input()), file=sys.stderr)",
    "speaks to the launcher": "import glob, socket\nfor p in glob.glob('/run/workstead/*.sock'):\n  s = socket.socket(socket.AF_UNIX)\n"
    "  s.connect(p); s.sendall(b'\\x1e\\0' + b'\\0' * 8 + b'\\0\\0\\0\\2ok')",
    "looks for the answers": "import os\nfor base, _, files in os.walk('/'):\n  if base.startswith(('/proc', '/sys', '/usr')): continue\n"
    "  for f in files:\n    if 'expected' in f or 'tests.json' in f: print(open(os.path.join(base, f)).read())",
}  # fmt: skip


@pytest.mark.fault(80)
@pytest.mark.parametrize("name", CHEATS)
async def test_no_test_passes_that_would_not(rooms: EngineRooms, name: str) -> None:
    verdict = await grade(rooms, CHEATS[name])
    assert (verdict.score, [c["passed"] for c in verdict.criteria]) == (0, [False, False])


PLANTERS = {
    "a python of its own in PATH and HOME": """
for d in ('/tmp', '/workspace', os.environ['HOME'], '/dev/shm', '/var/tmp'):
    for n in ('python3', 'find', 'sitecustomize.py', 'usercustomize.py', '.bashrc', '.pythonrc.py', 'sys.py'):
        try:
            with open(f'{d}/{n}', 'w') as f: f.write(FAKE)
            os.chmod(f'{d}/{n}', 0o755)
        except OSError: pass
""",
    "its own program replaced": "open('solution.py', 'w').write(FAKE)",
    "its own program as a folder": "os.unlink('solution.py'); os.mkdir('solution.py'); open('solution.py/x', 'w').close()",
    "its own program as a link": "os.unlink('solution.py'); os.symlink('/tmp/fake', 'solution.py'); open('/tmp/fake', 'w').write(FAKE)",
    "modules beside it": "open('json.py', 'w').write(FAKE); os.makedirs('site/a' + '/b' * 200)",
    "a folder that nobody may enter": "os.mkdir('/tmp/closed'); open('/tmp/closed/x', 'w').close(); os.chmod('/tmp/closed', 0)",
    "an input for the next": "open('/tmp/seen', 'w').write('3')",
}  # fmt: skip
REMEMBERS = r"""
import os, sys
FAKE = "#!/usr/bin/python3\nprint(99)\n"
seen = [p for p in ('/tmp/seen', '/tmp/closed', 'json.py', '/tmp/fake', '/dev/shm/find', os.environ['HOME'] + '/sys.py') if os.path.exists(p)]
print('found ' + ' '.join(seen) if seen else 2 * int(input()))
sys.stdout.flush()
"""


@pytest.mark.fault(80)
@pytest.mark.parametrize("name", PLANTERS)
async def test_a_test_finds_nothing_of_an_earlier_one(rooms: EngineRooms, name: str) -> None:
    tests = [{"id": str(n), "input": f"{n}\n", "expected": f"{2 * n}\n"} for n in range(3)]
    verdict = await grade(rooms, REMEMBERS + PLANTERS[name], tests)
    assert causes(verdict) == [None] * 3


HARDSHIPS = {
    "a bomb of processes": ("import os\nprint(2 * int(input()), flush=True)\nwhile True:\n  try: os.fork()\n  except OSError: pass", {"timeout", "memory_limit"}),
    "threads without end": ("import threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(60,)).start()\n"
                            "  except RuntimeError: break\nraise SystemExit(4)", {"timeout", "memory_limit"}),
    "a gigabyte at once": ("import os\nb = b'x' * (1 << 20)\nfor _ in range(1024): os.write(1, b)", {"output_limit"}),
    "a full disk": ("f = open('big', 'wb')\nwhile True: f.write(b'x' * (1 << 20))", {"crash"}),
    "inodes without end": ("n = 0\nwhile True:\n  open(f'f{n}', 'w').close(); n += 1", {"crash", "timeout"}),
    "another clock": ("import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)", {"crash"}),
    "a stopped launcher": ("import os, signal\nme = os.getpid()\nfor p in os.listdir('/proc'):\n"
                           "  if p.isdigit() and int(p) not in (1, me): os.kill(int(p), signal.SIGSTOP)\n", {"runner_killed"}),
    "another network": ("import socket; socket.create_connection(('192.0.2.1', 80), 3)", {"crash"}),
}  # fmt: skip


@pytest.mark.fault(82)
@pytest.mark.parametrize("name", _rows(HARDSHIPS, "threads without end", "a stopped launcher"))
async def test_a_sandbox_holds_what_a_program_does_to_it(
    rooms: EngineRooms, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SLACK_S", 3.0)
    program, expected = HARDSHIPS[name]
    (cause,) = causes(await grade(rooms, program, DOUBLE[:1], per_test_s=3))
    assert cause in expected
    assert (await grade(rooms, RIGHT)).score == 2


async def test_a_program_that_passes_and_leaves_processes_does_not_disturb_the_next_test(rooms: EngineRooms) -> None:
    program = "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(60)\n" + RIGHT
    verdict = await grade(rooms, program)
    assert causes(verdict) == [None, None]
    assert [(c["detail"]["room"], c["detail"]["processes_left"]) for c in verdict.criteria] == [(1, True), (2, True)]


@pytest.mark.fault(80)
async def test_expected_outputs_are_nowhere_inside(rooms: EngineRooms) -> None:
    secret = uuid.uuid4().hex
    finder = f"""
import os, sys
needle = {secret[:16]!r} + {secret[16:]!r}
sys.stdin.read()
for base, dirs, files in os.walk('/'):
    dirs[:] = [d for d in dirs if os.path.join(base, d) not in ('/sys', '/usr', '/proc', '/dev/fd')]
    if base == '/': files += [f'proc/{{p}}/{{f}}' for p in os.listdir('/proc') if p.isdigit() for f in ('environ', 'cmdline')]
    for name in files:
        if not os.path.isfile(os.path.join(base, name)): continue
        try:
            with open(os.path.join(base, name), 'rb') as f: found = needle.encode() in f.read(1 << 22)
        except OSError: continue
        if found: print(os.path.join(base, name))
"""
    control = await grade(rooms, finder, [{"id": "planted", "input": "", "expected": "/workspace/solution.py"}])
    assert control.score == 0, "the program itself does not hold the text in one piece"
    tests = [{"id": "a", "input": "x", "expected": secret}, {"id": "b", "input": "x", "expected": secret + "\n"}]
    verdict = await grade(rooms, finder, tests, per_test_s=60)
    assert causes(verdict) == ["no_output", "no_output"]
    whole = await grade(
        rooms,
        finder.replace("] + ", "] + '' + ") + f"# {secret}",
        [{**tests[0], "expected": "/workspace/solution.py"}],
        per_test_s=60,
    )
    assert whole.score == 1, "the search would have found it"


async def test_the_right_program_passes_in_every_odd_form(rooms: EngineRooms) -> None:
    crlf = "n = int(input())\r\nprint(2 * n)\r\n"
    for program in (crlf, "\ufeff" + RIGHT, RIGHT + "\n" + "#" * 500_000):
        assert (await grade(rooms, program)).score == 2
    big = [{"id": "big", "input": "x" * 3_000_000, "expected": "3000000"}]
    assert (await grade(rooms, "import sys; print(len(sys.stdin.read()))", big)).score == 1
    wide = [{"id": "wide", "input": "é ß\u0000", "expected": "é ß\u0000"}]
    assert (await grade(rooms, "import sys; sys.stdout.write(sys.stdin.read())", wide)).score == 1

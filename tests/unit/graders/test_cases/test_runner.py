"""Whose doing it was that a room was lost, and what happens to the tests after it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.domain.limits import Limits
from service.domain.run_states import ContainerState
from service.graders.contract import GraderBusy, GraderFault
from service.graders.test_cases import runner as module
from service.graders.test_cases.results import Cause
from service.graders.test_cases.runner import CLEAN, Runner
from service.graders.test_cases.settings import TestCasesSettings
from service.graders.test_cases.tests_file import TestItem
from service.sandboxes.contract import (
    ContainerReport,
    EngineError,
    ExecResult,
    LauncherLost,
    Sandbox,
    SandboxRefused,
    SandboxSpec,
    ToolFailed,
)
from service.testing.memory_sandbox import MemoryBackend, MemorySandbox

RUNNING = ContainerReport(ContainerState.RUNNING)
LEFT_ALONE = ("/workspace/solution.py",)
OK = ExecResult(0, None, b"2\n", b"", remains=LEFT_ALONE)
ITEMS = [TestItem(id=str(n), input="1", expected="2") for n in range(3)]
Answer = ExecResult | Exception


@dataclass
class Script:
    """What the launcher answers, program by program, and what the engine says meanwhile."""

    answers: list[Answer]
    report: ContainerReport = RUNNING
    rooms: list[list[str]] = field(default_factory=list[list[str]])
    cleaned: ExecResult = OK

    def exec(self, room: int, argv: Sequence[str], alone: bool) -> ExecResult:
        assert alone, "a test shares its sandbox with nothing"
        self.rooms[room].append("clean" if tuple(argv) == CLEAN else "check" if "-I" in argv else "run")
        if tuple(argv) == CLEAN:
            return self.cleaned
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Box(MemorySandbox):
    script: Script
    number: int

    async def exec(self, argv: Sequence[str], **options: Any) -> ExecResult:
        return self.script.exec(self.number, argv, options["alone"])

    async def inspect(self) -> ContainerReport:
        return self.script.report


class ScriptedRooms:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.backend = MemoryBackend()

    @asynccontextmanager
    async def open(
        self,
        environment: str,
        limits: Limits,
        *,
        in_memory: bool = False,
        runs_code: bool = False,
        verifier: bool = False,
    ) -> AsyncGenerator[Sandbox]:
        assert (in_memory, runs_code) == (True, True)
        made = await self.backend.make(SandboxSpec(await self.backend.resolve_image("base"), limits=limits))
        box = Box(made.id, self.backend.host)
        box.script, box.number = self.script, len(self.script.rooms)
        self.script.rooms.append([])
        try:
            yield box
        finally:
            await box.destroy()


async def run(script: Script, items: Sequence[TestItem] = ITEMS, **settings: Any) -> list[Cause | None]:
    rooms = ScriptedRooms(script)
    try:
        results = await Runner(rooms, TestCasesSettings(**settings), b"program").run(items)
    finally:
        rooms.backend.host.close()
    return [r.cause for r in results]


def lost() -> Exception:
    return LauncherLost("launcher_lost", "gone")


async def test_one_room_serves_all_tests_and_is_cleaned_only_where_something_was_left() -> None:
    tidy = Script([OK, OK, OK])
    assert await run(tidy) == [None] * 3
    assert tidy.rooms == [["run", "run", "run"]]
    messy = ExecResult(0, None, b"2\n", b"", remains=(*LEFT_ALONE, "/tmp/note"))
    unknown = ExecResult(0, None, b"2\n", b"")
    script = Script([messy, unknown, OK])
    assert await run(script) == [None] * 3
    assert script.rooms == [["run", "clean", "run", "clean", "run"]]


@pytest.mark.parametrize("cleaned", [ExecResult(1, None, b"", b"not empty"), ExecResult(0, None, b"", b"", left=True)])
async def test_what_cannot_be_cleaned_is_left_behind(cleaned: ExecResult) -> None:
    script = Script([ExecResult(0, None, b"2\n", b""), OK, OK], cleaned=cleaned)
    assert await run(script) == [None] * 3
    assert script.rooms == [["run", "clean"], ["run", "run"]]


async def test_processes_left_alive_mean_a_new_room_for_the_next() -> None:
    left = ExecResult(0, None, b"2\n", b"", left=True, remains=LEFT_ALONE)
    script = Script([left, OK, left])
    assert await run(script) == [None] * 3
    assert script.rooms == [["run"], ["run", "run"]]


@pytest.mark.fault(82)
async def test_a_container_that_ended_was_killed_from_inside() -> None:
    script = Script([OK, lost(), OK], ContainerReport(ContainerState.EXITED, 137))
    assert await run(script) == [None, Cause.RUNNER_KILLED, None]
    assert script.rooms == [["run", "run"], ["run"]]
    script = Script([lost(), OK, OK], ContainerReport(ContainerState.EXITED, 137, oom_kills=1))
    assert await run(script) == [Cause.MEMORY_LIMIT, None, None]


@pytest.mark.parametrize(
    "report",
    [ContainerReport(ContainerState.GONE), ContainerReport(ContainerState.EXITED, 137, engine_restarted=True)],
)
async def test_a_room_that_the_engine_lost_is_no_result(report: ContainerReport) -> None:
    with pytest.raises(GraderBusy) as raised:
        await run(Script([OK, lost()], report))
    assert raised.value.type == "room_lost"


async def test_a_silent_launcher_is_tried_once_more_and_only_then_the_programs_doing() -> None:
    once = Script([lost(), OK, OK, OK])
    assert await run(once) == [None] * 3
    assert once.rooms == [["run"], ["run", "run", "run"]]
    twice = Script([lost(), lost(), OK, OK])
    assert await run(twice) == [Cause.RUNNER_KILLED, None, None]
    each = Script([lost(), OK, lost(), OK, lost(), OK])
    assert await run(each) == [None] * 3


async def test_silence_is_not_waited_for_beyond_the_tests_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLACK_S", 0.05)
    hangs = 2
    original = Box.exec

    async def hang(self: Box, argv: Sequence[str], **options: Any) -> ExecResult:
        nonlocal hangs
        if hangs:
            hangs -= 1
            await asyncio.sleep(60)
        return await original(self, argv, **options)

    monkeypatch.setattr(Box, "exec", hang)
    async with asyncio.timeout(10):
        assert await run(Script([OK, OK]), per_test_s=0.1) == [Cause.RUNNER_KILLED, None, None]


@pytest.mark.parametrize(
    ("error", "kind", "type"),
    [
        (EngineError("engine_unreachable", "away"), GraderBusy, "engine_unavailable"),
        (SandboxRefused("image_unknown", "no image"), GraderFault, "grader_unavailable"),
        (ToolFailed("no_such_program", "no python"), GraderFault, "grader_unavailable"),
    ],
)
async def test_no_fault_of_ours_becomes_a_wrong_answer(error: Exception, kind: type[Any], type: str) -> None:
    with pytest.raises(kind) as raised:
        await run(Script([OK, error]))
    assert raised.value.type == type


@pytest.mark.parametrize(
    ("done", "cause"),
    [
        (ExecResult(0, None, b"3\n", b""), Cause.WRONG_ANSWER),
        (ExecResult(0, None, b"\xff", b""), Cause.WRONG_ANSWER),
        (ExecResult(0, None, b" \n", b""), Cause.NO_OUTPUT),
        (ExecResult(0, None, b"", b"", left=True), Cause.PROCESSES_LEFT),
        (ExecResult(None, 11, b"2\n", b""), Cause.CRASH),
        (ExecResult(3, None, b"2\n", b""), Cause.CRASH),
        (ExecResult(None, 9, b"2\n", b"", timed_out=True), Cause.TIMEOUT),
        (ExecResult(None, 9, b"2\n", b"", truncated=True), Cause.OUTPUT_LIMIT),
        (ExecResult(0, None, b"2\r\n", b"noise"), None),
    ],
)
async def test_what_was_observed_decides(done: ExecResult, cause: Cause | None) -> None:
    assert await run(Script([done, OK]), ITEMS[:1]) == [cause]


async def test_a_failure_beside_a_memory_kill_is_the_memory_limit() -> None:
    killed = ContainerReport(ContainerState.RUNNING, oom_kills=1)
    script = Script([ExecResult(1, None, b"", b""), OK], killed)
    assert await run(script, ITEMS[:2]) == [Cause.MEMORY_LIMIT, None]
    assert script.rooms == [["run"], ["run"]]


@pytest.mark.parametrize(("checked", "cause"), [(1, Cause.COMPILE_ERROR), (0, Cause.CRASH)])
async def test_a_text_that_is_no_program_is_told_from_a_crash_and_asked_once(checked: int, cause: Cause) -> None:
    crash = ExecResult(1, None, b"", b"", remains=LEFT_ALONE)
    script = Script([crash, ExecResult(checked, None, b"", b""), crash])
    assert await run(script, ITEMS[:2]) == [cause] * 2
    assert script.rooms == [["run", "check", "run"]]

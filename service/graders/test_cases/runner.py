"""Runs a candidate's program on inputs, each in a process of its own that nothing outlives, in rooms of its own.

What the program is believed: its standard output and how it ended, as our launcher saw it from outside. Expected
outputs stay here. Whose doing it was when a room is lost is decided by the engine's word, never by the candidate's:
a container that ended by itself was killed by the only programs inside it; one that is gone, or ended with the engine,
was not.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.domain.run_states import ContainerState
from service.graders.contract import GraderBusy, GraderFault
from service.graders.test_cases.judge import Observed, judge
from service.graders.test_cases.languages import ENVIRONMENT, TOOLS
from service.graders.test_cases.results import Cause, Result
from service.graders.test_cases.settings import TestCasesSettings
from service.graders.test_cases.tests_file import TestItem
from service.sandboxes.contract import (
    WORKSPACE,
    ExecResult,
    FileSource,
    LauncherLost,
    Sandbox,
    SandboxError,
    SandboxGone,
    SandboxRefused,
    ToolFailed,
)
from service.sandboxes.rooms import Rooms

SLACK_S = 10.0
"""How long the launcher may be silent beyond a test's own time."""
TOOL_S = 10.0
CLEAN = ("/usr/bin/find", "/workspace", "/tmp", "/var/tmp", "/dev/shm", "-mindepth", "1", "-delete")  # noqa: S108


@dataclass(slots=True)
class _Room:
    box: Sandbox
    number: int
    used: bool = False
    spent: bool = False
    """Whoever comes next gets another room."""
    oom_kills: int = 0
    remains: tuple[str, ...] | None = None
    """What the last program left, as far as it is known."""


@dataclass(slots=True)
class Runner:
    """One deliverable's program. ``rooms_used`` counts the rooms that it took."""

    rooms: Rooms
    settings: TestCasesSettings
    program: bytes
    rooms_used: int = field(default=0, init=False)
    _compiles: bool | None = field(default=None, init=False)
    _silent: str | None = field(default=None, init=False)
    """The test in which the launcher was silent once."""

    async def run(self, items: Sequence[TestItem]) -> list[Result]:
        """Return a result per item. Raises GraderBusy (engine away, room lost), GraderFault (image unusable)."""
        try:
            return await self._run(items)
        except (SandboxRefused, ToolFailed) as error:
            raise GraderFault("grader_unavailable", f"{error.type}: {error.detail}") from error
        except SandboxError as error:
            kind = "room_lost" if isinstance(error, SandboxGone | LauncherLost) else "engine_unavailable"
            raise GraderBusy(kind, str(error)) from error

    async def _run(self, items: Sequence[TestItem]) -> list[Result]:
        results: list[Result] = []
        environment, limits = self.settings.environment, self.settings.limits()
        while len(results) < len(items):
            self.rooms_used += 1
            async with self.rooms.open(environment, limits, in_memory=True, runs_code=True) as box:
                room = _Room(box, self.rooms_used)
                while len(results) < len(items) and not room.spent:
                    result = await self._one(room, items[len(results)])
                    if result is not None:
                        results.append(result)
        return results

    async def _one(self, room: _Room, item: TestItem) -> Result | None:
        """Return the result, or null where the same test is to be run again in a new room (``room.spent`` is set)."""
        if not await self._prepared(room):
            return None
        tool, limit_s = TOOLS[self.settings.language], self.settings.per_test_s
        try:
            async with asyncio.timeout(limit_s + SLACK_S):
                done = await self._exec(room, tool.run, item.input.encode(), limit_s)
        except (LauncherLost, TimeoutError):
            return await self._why_lost(room, item)
        room.spent, room.remains = room.spent or done.left, done.remains
        seen = Observed(done, room.number, room.box.spec.runtime)
        result = judge(item.expected, self.settings.comparator, seen)
        if result.cause in (None, Cause.TIMEOUT, Cause.OUTPUT_LIMIT):
            return result
        if await self._out_of_memory(room):
            return Result.failed(Cause.MEMORY_LIMIT, detail=result.detail)
        if result.cause is Cause.CRASH and not await self._is_program(room):
            return Result.failed(Cause.COMPILE_ERROR, detail=result.detail)
        return result

    async def _prepared(self, room: _Room) -> bool:
        """Give the test what every test finds: the program, and nothing of an earlier test."""
        fresh, room.used = not room.used, True
        try:
            if not fresh and room.remains != (f"{WORKSPACE}/{TOOLS[self.settings.language].file}",):
                cleaned = await self._exec(room, CLEAN, b"", TOOL_S)
                room.spent = cleaned.code != 0 or cleaned.left
            if not room.spent:
                await self._write(room)
        except (LauncherLost, ToolFailed):
            if fresh:
                raise
            room.spent = True
        return not room.spent

    async def _write(self, room: _Room) -> None:
        name = TOOLS[self.settings.language].file
        await room.box.write_files([FileSource(name, data=self.program)])

    async def _exec(self, room: _Room, argv: Sequence[str], stdin: bytes, timeout_s: float) -> ExecResult:
        return await room.box.exec(
            argv,
            stdin=stdin,
            env=ENVIRONMENT,
            timeout_s=timeout_s,
            limit_bytes=self.settings.output_bytes,
            alone=True,
        )

    async def _why_lost(self, room: _Room, item: TestItem) -> Result | None:
        room.spent = True
        report = await room.box.inspect()
        if report.state is ContainerState.GONE or report.engine_restarted:
            raise GraderBusy("room_lost", f"the engine lost {room.box.id}")
        if report.state is ContainerState.RUNNING and self._silent != item.id:
            # The program may have stopped the launcher, or this host starved it: the same again tells.
            self._silent = item.id
            return None
        cause = Cause.MEMORY_LIMIT if report.oom_kills else Cause.RUNNER_KILLED
        return Result.failed(cause, detail={"room": room.number, "runtime": room.box.spec.runtime, "killed": True})

    async def _out_of_memory(self, room: _Room) -> bool:
        killed = (await room.box.inspect()).oom_kills > room.oom_kills
        room.spent = room.spent or killed
        return killed

    async def _is_program(self, room: _Room) -> bool:
        """Tell whether the text is one of the language at all; asked once. Where it cannot be told: yes."""
        if self._compiles is None and not room.spent:
            try:
                await self._write(room)
                checked = await self._exec(room, TOOLS[self.settings.language].check, b"", TOOL_S)
            except (LauncherLost, ToolFailed):
                room.spent = True
            else:
                room.spent = checked.left
                self._compiles = checked.code == 0
        return self._compiles is not False

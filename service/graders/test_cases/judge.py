"""Decide one test from what was observed of the program. Pure."""

from dataclasses import dataclass
from typing import Any

from service.graders.test_cases.compare import equal
from service.graders.test_cases.results import Cause, Result
from service.graders.test_cases.settings import Comparator
from service.sandboxes.contract import ExecResult


@dataclass(frozen=True, slots=True)
class Observed:
    done: ExecResult
    room: int
    """Number of the deliverable's room, from 1."""
    runtime: str

    def record(self) -> dict[str, Any]:
        """Return what is kept of the run: measures, never a byte of what was written."""
        done, usage = self.done, self.done.usage
        return {
            "wall_s": round(usage.wall_s, 4) if usage else None,
            "cpu_s": round(usage.cpu_s, 4) if usage else None,
            "max_rss_bytes": usage.max_rss_bytes if usage else None,
            "exit_code": done.code,
            "signal": done.signal,
            "killed": done.timed_out or done.truncated,
            "stdout_bytes": len(done.stdout),
            "stderr_bytes": len(done.stderr),
            "truncated": done.truncated,
            "processes_left": done.left,
            "room": self.room,
            "runtime": self.runtime,
        }


def judge(expected: str, comparator: Comparator, seen: Observed) -> Result:
    done, detail = seen.done, seen.record()
    if done.timed_out:
        return Result.failed(Cause.TIMEOUT, detail=detail)
    if done.truncated:
        return Result.failed(Cause.OUTPUT_LIMIT, detail=detail)
    if done.code != 0:
        how = f"signal {done.signal}" if done.code is None else f"exit code {done.code}"
        return Result.failed(Cause.CRASH, f"the program failed: {how}", detail)
    try:
        text = done.stdout.decode()
    except UnicodeDecodeError:
        return Result.failed(Cause.WRONG_ANSWER, "standard output is not UTF-8 text", detail)
    if equal(text, expected, comparator):
        return Result(None, detail=detail)
    if text.strip():
        return Result.failed(Cause.WRONG_ANSWER, detail=detail)
    return Result.failed(Cause.PROCESSES_LEFT if done.left else Cause.NO_OUTPUT, detail=detail)

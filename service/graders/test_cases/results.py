"""What became of one test, with a typed cause and a record of the program's run."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from service.graders.test_cases.tests_file import TestItem


class Cause(StrEnum):
    WRONG_ANSWER = "wrong_answer"
    NO_OUTPUT = "no_output"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    CRASH = "crash"
    """The program ended with another exit code than 0, or by a signal that was not ours."""
    COMPILE_ERROR = "compile_error"
    """As ``crash``, and the text is no program of the language."""
    NO_CODE = "no_code"
    NO_ANSWER = "no_answer"
    UNPARSABLE_ANSWER = "unparsable_answer"
    RUNNER_KILLED = "runner_killed"
    """The program killed the sandbox around it."""
    PROCESSES_LEFT = "processes_left"
    """Nothing was written when the program ended, and it had left processes behind."""
    MISSING_DELIVERABLE = "missing_deliverable"


REASONS = {
    Cause.WRONG_ANSWER: "not the expected answer",
    Cause.NO_OUTPUT: "nothing was written to standard output",
    Cause.TIMEOUT: "over the time limit",
    Cause.MEMORY_LIMIT: "over the memory limit",
    Cause.OUTPUT_LIMIT: "over the output limit",
    Cause.CRASH: "the program failed",
    Cause.COMPILE_ERROR: "the text is no program of the language",
    Cause.RUNNER_KILLED: "the program killed its sandbox",
    Cause.PROCESSES_LEFT: "the program ended without output and left processes behind",
    Cause.NO_ANSWER: "no answer",
}


@dataclass(frozen=True, slots=True)
class Result:
    """``cause`` null: passed."""

    cause: Cause | None
    reason: str = ""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def failed(cls, cause: Cause, reason: str = "", detail: dict[str, Any] | None = None) -> "Result":
        return cls(cause, reason or REASONS.get(cause, ""), detail or {})


def criterion(item: TestItem, result: Result) -> dict[str, Any]:
    passed = result.cause is None
    return {
        "id": item.id,
        "score": item.points if passed else 0.0,
        "max_score": item.points,
        "passed": passed,
        "cause": result.cause,
        "reason": result.reason,
        "detail": {"kind": item.kind, **result.detail},
    }

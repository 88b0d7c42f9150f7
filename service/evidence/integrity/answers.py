"""What the checker said, as it must be taken: text that hostile bytes may have had a hand in."""

import json
import re
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.domain.integrity import MAX_DETAIL, MAX_PROBLEMS, Facts, Problem, ProblemType

MAX_LINE = 64 * 1024
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
FROM_INSIDE = frozenset(ProblemType) - {ProblemType.CHECKER_FAILED}


class Answer(BaseModel):
    """One line. Nothing in it names a file: the number does, and it must be one that was asked about."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: int = Field(ge=0)
    sniffed: str | None = Field(default=None, pattern=r"^[a-z0-9]{1,16}$")
    opens: bool | None = None
    problems: list[Problem] = Field(default_factory=list[Problem], max_length=MAX_PROBLEMS)
    facts: Facts = Field(default_factory=Facts)


def answers(output: bytes, asked: frozenset[int]) -> dict[int, Answer]:
    """Return the first answer that fits for each number that was asked about; everything else is dropped."""
    found: dict[int, Answer] = {}
    for line in output.split(b"\n"):
        answer = _answer(line)
        if answer is not None and answer.n in asked:
            found.setdefault(answer.n, answer)
    return found


def _answer(line: bytes) -> Answer | None:
    if not line or len(line) > MAX_LINE:
        return None
    try:
        value: object = json.loads(line)
        if not isinstance(value, dict):
            return None
        fields = cast("dict[str, Any]", value)
        if "problems" in fields:
            fields["problems"] = [_problem(*p) for p in fields["problems"]]
        return Answer.model_validate(fields, strict=True)
    except (ValueError, TypeError, RecursionError, ValidationError):
        return None


def _problem(kind: str, detail: str) -> Problem:
    """Raise ValueError for a type that is not the checker's to say."""
    type_ = ProblemType(kind)
    if type_ not in FROM_INSIDE:
        raise ValueError(kind)
    return Problem(type=type_, detail=_UNSHOWN.sub(" ", detail)[:MAX_DETAIL])

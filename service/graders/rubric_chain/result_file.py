"""JobBench's own result file, ``<judge>_judge.json``: written from a verdict, and read into one.

Its indices count from 0, ours from 1. A rubric that its harness could not have judged is in it with 0 points; that is no
verdict, and a file with one is refused.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError

from service.domain.errors import Invalid
from service.domain.judging import Vote, VoteState
from service.domain.tasks import canonical_digest
from service.domain.verdicts import Verdict
from service.graders.judging import answers
from service.graders.rubric_chain import scoring
from service.graders.rubric_chain.rubrics_file import MOST_CRITERIA, MOST_RUBRICS, Rubric

MOST_PROBLEMS = 50
IMPORTED = "imported"
_UNJUDGED = ("Failed after ", "Failed to get judge response", "Judge raised an exception")
"""How JobBench's harness begins the reasoning of what no judge has answered."""
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Number = Annotated[StrictInt | StrictFloat, Field(ge=-1e12, le=1e12)]
_Count = Annotated[StrictInt, Field(ge=0, le=1_000_000)]
_Text = Annotated[str, Field(max_length=200_000)]


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Criterion(_Read):
    index: _Count
    criterion: _Text
    passed: StrictBool
    reasoning: _Text = ""
    evidence: _Text = ""


class _Result(_Read):
    passed: StrictBool
    score: _Number
    criteria_count: _Count
    criteria_passed: _Count
    criteria_results: list[_Criterion] = Field(min_length=1, max_length=MOST_CRITERIA)
    overall_reasoning: _Text = ""


class _Rubric(_Read):
    index: _Count
    rubric: _Text
    weight: _Number
    result: _Result


class _Implementation(_Read):
    extraction_schema: _Count | Annotated[str, Field(max_length=200)] | None = None
    sha256: Annotated[str, Field(max_length=200)] | None = None


class _File(_Read):
    evaluated_model: Annotated[str, Field(max_length=200)] = ""
    judge_model: _Name
    judge_implementation: _Implementation | None = None
    timestamp: Annotated[str, Field(max_length=64)] = ""
    total_score: _Number
    max_score: _Number
    pass_rate: Annotated[str, Field(max_length=16)]
    passed_count: _Count
    total_count: _Count
    rubrics: list[_Rubric] = Field(min_length=1, max_length=MOST_RUBRICS)


@dataclass(frozen=True, slots=True)
class Imported:
    verdict: Verdict
    votes: list[Vote]
    settings: dict[str, Any]
    """What tells this grading from others of the same method: whose judge it was, and the file's digest."""


def file_name(judge_model: str) -> str:
    return judge_model.translate(str.maketrans({".": "-", " ": "-", "/": "-", "\\": "-"})) + "_judge.json"


def written(
    criteria: Sequence[Mapping[str, Any]],
    *,
    evaluated_model: str,
    judge_model: str,
    implementation: Mapping[str, Any],
    at: datetime,
) -> dict[str, Any]:
    """Return the file of a verdict of this method; ``criteria``: all its rows, in order."""
    rubrics: list[dict[str, Any]] = []
    for row in criteria:
        if "." not in row["id"]:
            rubrics.append(_rubric_of(len(rubrics), row))
        else:
            rubrics[-1]["result"]["criteria_results"].append(_criterion_of(rubrics[-1], row))
    passed = sum(r["result"]["passed"] for r in rubrics)
    return {
        "evaluated_model": evaluated_model,
        "judge_model": judge_model,
        "judge_implementation": dict(implementation),
        "timestamp": at.isoformat(timespec="seconds"),
        "total_score": _plain(sum(r["result"]["score"] for r in rubrics)),
        "max_score": _plain(sum(r["weight"] for r in rubrics)),
        "pass_rate": _rate(passed, len(rubrics)),
        "passed_count": passed,
        "total_count": len(rubrics),
        "rubrics": rubrics,
    }


def read(found: Mapping[str, Any], rubrics: Sequence[Rubric] | None) -> Imported:
    """Read a file into a verdict; ``rubrics``: the task's, null where it has none to compare with.

    Raises Invalid ``bad_jobbench_result`` with every problem (at most 50) and its place.
    """
    try:
        file = _File.model_validate(found)
    except ValidationError as error:
        listed = error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]
        raise _refused([{"at": list(e["loc"]), "message": e["msg"]} for e in listed]) from None
    problems = [*_totals(file), *_unlike(file, rubrics)]
    for n, rubric in enumerate(file.rubrics):
        problems += [{"at": ["rubrics", n], "message": said} for said in _wrong(n, rubric)]
    if problems:
        raise _refused(problems[:MOST_PROBLEMS])
    decided: list[scoring.Decided] = []
    votes: list[Vote] = []
    for rubric in file.rubrics:
        ours = _ours(rubric)
        votes.append(_vote(file, ours, rubric.result))
        decided.append(scoring.decide(ours, votes[-1:]))
    implementation = None if file.judge_implementation is None else file.judge_implementation.model_dump()
    whose = {"judge_model": file.judge_model, "judge_implementation": implementation}
    about = {"provenance": IMPORTED, **whose, "evaluated_model": file.evaluated_model, "judged_at": file.timestamp}
    settings = {IMPORTED: {**whose, "file_sha256": canonical_digest(dict(found))}}
    return Imported(scoring.verdict(decided, about), votes, settings)


def _rubric_of(index: int, row: Mapping[str, Any]) -> dict[str, Any]:
    detail = row["detail"]
    return {
        "index": index,
        "rubric": detail["rubric"],
        "weight": _plain(row["max_score"]),
        "result": {
            "passed": row["passed"],
            "score": _plain(row["score"]),
            "criteria_count": detail["criteria_count"],
            "criteria_passed": detail["criteria_passed"],
            "criteria_results": [],
            "overall_reasoning": row["reason"] or "",
        },
    }


def _criterion_of(rubric: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "index": len(rubric["result"]["criteria_results"]),
        "criterion": row["detail"]["criterion"],
        "passed": row["passed"],
        "reasoning": row["reason"] or "",
        "evidence": row["detail"].get("evidence", ""),
    }


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number


def _rate(passed: int, total: int) -> str:
    return f"{100 * passed // total}%"


def _totals(file: _File) -> list[dict[str, Any]]:
    passed = sum(r.result.passed for r in file.rubrics)
    wanted: dict[str, Any] = {
        "total_score": sum(r.result.score for r in file.rubrics),
        "max_score": sum(r.weight for r in file.rubrics),
        "pass_rate": _rate(passed, len(file.rubrics)),
        "passed_count": passed,
        "total_count": len(file.rubrics),
    }
    found = {name: getattr(file, name) for name in wanted}
    wrong = [name for name, value in wanted.items() if not _same(found[name], value)]
    problems = [{"at": [name], "message": f"the rubrics give {wanted[name]}"} for name in wrong]
    return (
        problems if wanted["max_score"] > 0 else [*problems, {"at": ["rubrics"], "message": "no rubric has a weight"}]
    )


def _same(a: Any, b: Any) -> bool:
    return a == b if isinstance(b, str) else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def _wrong(n: int, rubric: _Rubric) -> list[str]:
    """Say what is wrong with one rubric in itself."""
    result = rubric.result
    passed = [c.passed for c in result.criteria_results]
    said = [result.overall_reasoning, *(c.reasoning for c in result.criteria_results)]
    checks = {
        f"its index is not {n}": rubric.index != n,
        "its weight is no number of 0 or more": not 0 <= rubric.weight <= 1e9,
        "it has no text": not rubric.rubric.strip(),
        "its criteria are not numbered from 0": [c.index for c in result.criteria_results] != list(range(len(passed))),
        "its counts do not fit": (result.criteria_count, result.criteria_passed) != (len(passed), sum(passed)),
        "it passed and a criterion did not, or the reverse": result.passed != all(passed),
        "its score does not follow": not _same(result.score, rubric.weight if result.passed else 0),
        "no judge has answered": any(text.startswith(_UNJUDGED) for text in said),
    }
    return [message for message, holds in checks.items() if holds]


def _unlike(file: _File, rubrics: Sequence[Rubric] | None) -> list[dict[str, Any]]:
    if rubrics is None:
        return []
    if len(rubrics) != len(file.rubrics):
        return [{"at": ["rubrics"], "message": f"the task has {len(rubrics)} rubrics"}]
    pairs = enumerate(zip(file.rubrics, rubrics, strict=True))
    return [
        {"at": ["rubrics", n], "message": "it is not the task's"} for n, (theirs, own) in pairs if not _is(theirs, own)
    ]


def _is(theirs: _Rubric, own: Rubric) -> bool:
    criteria = tuple(c.criterion for c in theirs.result.criteria_results)
    return theirs.rubric == own.text and _same(theirs.weight, own.weight) and criteria == own.criteria


def _ours(rubric: _Rubric) -> Rubric:
    criteria = tuple(c.criterion for c in rubric.result.criteria_results)
    return Rubric(rubric.index + 1, rubric.rubric, float(rubric.weight), criteria, None)


def _vote(file: _File, rubric: Rubric, result: _Result) -> Vote:
    results = [
        {
            "index": c.index + 1,
            "reasoning": answers.words(c.reasoning),
            "evidence": answers.words(c.evidence),
            "passed": c.passed,
        }
        for c in result.criteria_results
    ]
    said = answers.words(result.overall_reasoning)
    content = {"criteria_results": results, "overall_reasoning": said, "rubric_passed": result.passed, IMPORTED: True}
    judge = f"{file.judge_model}#{IMPORTED}"
    return Vote(judge, scoring.item(rubric), 1, VoteState.VALID, content, model=file.judge_model, template=IMPORTED)


def _refused(problems: Sequence[Mapping[str, Any]]) -> Invalid:
    first = problems[0]
    where = ".".join(map(str, first["at"]))
    return Invalid("bad_jobbench_result", f"{where}: {first['message']}", problems=list(problems))

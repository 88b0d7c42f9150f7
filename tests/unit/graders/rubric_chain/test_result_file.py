import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.verdicts import VerdictState
from service.graders.rubric_chain import result_file, rubrics_file
from service.graders.rubric_chain.grader import RubricChainGrader
from tests.unit.graders.judged import delivered, given, judges_saying, rubric_answer

RUBRICS: dict[str, Any] = {
    "rubrics": [
        {"rubric": "Totals", "weight": 10, "criterion": ["North", "South"]},
        {"rubric": "Words", "weight": 2.5, "criterion": ["Summary"]},
        {"rubric": "Tables", "weight": 4, "criterion": ["One", "Two"]},
    ]
}
IMPLEMENTATION = {"extraction_schema": "x", "sha256": "0" * 64}


async def written() -> dict[str, Any]:
    judges = judges_saying(lambda q: rubric_answer(q, lambda n: not ("Tables" in q.system and n == 2)))
    verdict = await RubricChainGrader().grade(given({}, [delivered("a.md", "x")], judges, {"RUBRICS.json": RUBRICS}))
    at = datetime(2026, 4, 1, 12, tzinfo=UTC)
    return result_file.written(
        verdict.criteria, evaluated_model="agent", judge_model="x-ai/grok-4.3", implementation=IMPLEMENTATION, at=at
    )


async def test_the_layout_is_jobbenchs() -> None:
    file = await written()
    assert {k: v for k, v in file.items() if k != "rubrics"} == {
        "evaluated_model": "agent", "judge_model": "x-ai/grok-4.3", "judge_implementation": IMPLEMENTATION,
        "timestamp": "2026-04-01T12:00:00+00:00", "total_score": 12.5, "max_score": 16.5, "pass_rate": "66%",
        "passed_count": 2, "total_count": 3,
    }  # fmt: skip
    assert [r["index"] for r in file["rubrics"]] == [0, 1, 2]
    assert file["rubrics"][2] == {
        "index": 2, "rubric": "Tables", "weight": 4,
        "result": {
            "passed": False, "score": 0, "criteria_count": 2, "criteria_passed": 1,
            "criteria_results": [
                {"index": 0, "criterion": "One", "passed": True, "reasoning": "why 1", "evidence": "report.md"},
                {"index": 1, "criterion": "Two", "passed": False, "reasoning": "why 2", "evidence": "report.md"},
            ],
            "overall_reasoning": "all in all",
        },
    }  # fmt: skip
    assert [type(r["weight"]) for r in file["rubrics"]] == [int, float, int]


def test_the_files_name_has_neither_dots_nor_spaces() -> None:
    assert result_file.file_name("grok-4.1 fast") == "grok-4-1-fast_judge.json"
    assert "/" not in result_file.file_name("x-ai/../grok")


async def test_what_was_written_is_read_again() -> None:
    file = await written()
    found = result_file.read(file, rubrics_file.parse(RUBRICS))
    assert (found.verdict.state, found.verdict.score, found.verdict.max_score) == (VerdictState.GRADED, 12.5, 16.5)
    assert found.verdict.detail["provenance"] == "imported"
    assert found.verdict.detail["judge_implementation"] == IMPLEMENTATION
    assert [(v.item, v.model, v.template, v.content["imported"]) for v in found.votes] == [
        (f"r{n}", "x-ai/grok-4.3", "imported", True) for n in (1, 2, 3)
    ]
    again = result_file.written(
        found.verdict.criteria,
        evaluated_model="agent",
        judge_model="x-ai/grok-4.3",
        implementation=IMPLEMENTATION,
        at=datetime(2026, 4, 1, 12, tzinfo=UTC),
    )
    assert again == file


async def test_an_older_file_without_its_implementation_is_read() -> None:
    file = await written()
    del file["judge_implementation"], file["evaluated_model"]
    assert result_file.read(file, None).verdict.detail["judge_implementation"] is None


def _first(file: dict[str, Any], **fields: Any) -> None:
    file["rubrics"][0] |= fields


def _result(file: dict[str, Any], n: int = 0, **fields: Any) -> None:
    file["rubrics"][n]["result"] |= fields


def _criterion(file: dict[str, Any], n: int = 0, **fields: Any) -> None:
    file["rubrics"][n]["result"]["criteria_results"][0] |= fields


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no judge": lambda f: f.pop("judge_model"),
    "error in its place": lambda f: (f.clear(), f.update(error="rubrics not found")),
    "rubrics are a word": lambda f: f.update(rubrics="all"),
    "no rubrics": lambda f: f.update(rubrics=[]),
    "too many rubrics": lambda f: f.update(rubrics=f["rubrics"] * 200),
    "total": lambda f: f.update(total_score=16.5),
    "total as text": lambda f: f.update(total_score="12.5"),
    "maximum": lambda f: f.update(max_score=10),
    "rate": lambda f: f.update(pass_rate="67%"),
    "count": lambda f: f.update(passed_count=3),
    "a count of 400 digits": lambda f: f.update(passed_count=10**400),
    "a total of 400 digits": lambda f: f.update(total_score=10**400),
    "a weight that is none": lambda f: _first(f, weight=float("nan")),
    "index": lambda f: _first(f, index=1),
    "from 1": lambda f: [r.update(index=r["index"] + 1) for r in f["rubrics"]],
    "passed as text": lambda f: _result(f, passed="true"),
    "criterion passed as text": lambda f: _criterion(f, passed="true"),
    "negative weight": lambda f: _first(f, weight=-10),
    "infinite weight": lambda f: _first(f, weight=float("inf")),
    "score": lambda f: _result(f, 2, score=4),
    "rubric passed, criterion not": lambda f: _criterion(f, passed=False),
    "criterion count": lambda f: _result(f, criteria_count=3),
    "criterion numbers": lambda f: _criterion(f, index=5),
    "never judged": lambda f: _result(f, 2, overall_reasoning="Failed after 3 attempts: 503"),
    "one never judged": lambda f: _criterion(f, 2, reasoning="Failed to get judge response: timeout"),
    "another task's criteria": lambda f: _criterion(f, criterion="East"),
    "another task's text": lambda f: _first(f, rubric="Sums"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
async def test_a_file_that_does_not_hold_is_refused(broken: Callable[[dict[str, Any]], Any]) -> None:
    file = copy.deepcopy(await written())
    broken(file)
    with pytest.raises(Invalid) as caught:
        result_file.read(file, rubrics_file.parse(RUBRICS))
    assert caught.value.type == "bad_jobbench_result"
    assert 1 <= len(caught.value.fields["problems"]) <= result_file.MOST_PROBLEMS


async def test_fewer_rubrics_than_the_task_has_are_refused() -> None:
    two = rubrics_file.parse({"rubrics": RUBRICS["rubrics"][:2]})
    with pytest.raises(Invalid, match="the task has 2 rubrics"):
        result_file.read(await written(), two)

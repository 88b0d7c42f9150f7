"""The method as a whole: settings, the file of tests, answers, points, and what only an engine could decide."""

import io
import json
from typing import Any

import pytest

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Invalid
from service.domain.tasks import GraderSpec, TaskManifest
from service.domain.verdicts import Verdict
from service.graders import registry
from service.graders.contract import GraderFault, GradingInput
from service.graders.test_cases.grader import TestCasesGrader

ANSWERS = "output/answers.json"
TEXT = {"id": "t", "kind": "text", "input": "upper: x", "expected": "X", "points": 15}
CHOICE = {"id": "c", "kind": "choice", "expected": "B", "choices": ["one", "two", "three"], "points": 10}
CODE = {"id": "p", "input": "1", "expected": "2"}


async def grade(answers: Any, *tests: dict[str, Any], hidden: bytes | None = None, **settings: Any) -> Verdict:
    data = answers if isinstance(answers, bytes) else json.dumps(answers).encode()
    entries = [] if answers is None else [ArtifactEntry(ANSWERS, EntryKind.FILE, len(data), "a" * 64)]
    file = {"tests": list(tests), **({"passing_score": 12} if TEXT in tests else {})}
    given = GradingInput(
        settings, entries, lambda _: io.BytesIO(hidden or json.dumps(file).encode()), lambda _: io.BytesIO(data)
    )
    return await TestCasesGrader().grade(given)


@pytest.mark.parametrize(
    ("answers", "causes", "points", "certified"),
    [
        ({"t": "X", "c": "b"}, [None, None], 25, True),
        ({"t": "X", "c": "two"}, [None, None], 25, True),
        ({"t": "X\r\n", "c": "A"}, [None, "wrong_answer"], 15, True),
        ({"t": "x", "c": "B"}, ["wrong_answer", None], 10, False),
        ({"t": "", "c": "Z"}, ["no_answer", "unparsable_answer"], 0, False),
        ({"t": None}, ["no_answer", "no_answer"], 0, False),
        ({"t": ["X"], "c": {"B": 1}}, ["wrong_answer", "unparsable_answer"], 0, False),
        ({"t": 3, "c": True}, ["wrong_answer", "unparsable_answer"], 0, False),
        (b"not JSON", ["unparsable_answer"] * 2, 0, False),
        (None, ["missing_deliverable"] * 2, 0, False),
    ],
)
async def test_answers(answers: Any, causes: list[str | None], points: float, certified: bool) -> None:
    verdict = await grade(answers, TEXT, CHOICE)
    assert [c["cause"] for c in verdict.criteria] == causes
    wrong = sum(c is not None for c in causes)
    assert (verdict.score, verdict.max_score) == (points, 25)
    assert verdict.detail["percent"] == pytest.approx(4 * points)
    assert [verdict.detail[n] for n in ("tests", "wrong", "solved", "certified")] == [2, wrong, wrong == 0, certified]


async def test_results_name_their_comparator() -> None:
    assert (await grade({"t": "X "}, TEXT)).detail["comparator"] == "trim"
    assert (await grade({"t": "X "}, TEXT, comparator="exact")).detail["wrong"] == 1
    number = {"id": "n", "kind": "text", "expected": "0.5"}
    assert (await grade({"n": 0.50}, number, comparator="lenient")).score == 1


async def test_a_program_needs_an_engine_and_says_so() -> None:
    with pytest.raises(GraderFault) as raised:
        await grade({"t": "X"}, TEXT, CODE)
    assert raised.value.type == "grader_unavailable"


@pytest.mark.parametrize(
    "hidden",
    [
        b"{", b"[]", b'{"tests": []}', json.dumps({"tests": [CODE, CODE]}).encode(),
        json.dumps({"tests": [{**CHOICE, "expected": "D"}]}).encode(), json.dumps({"tests": [{**CHOICE, "expected": "AB"}]}).encode(),
        json.dumps({"tests": [{**CODE, "choices": ["a", "b"]}]}).encode(), json.dumps({"tests": [{**CODE, "points": 0}]}).encode(),
        json.dumps({"tests": [{**CODE, "input": "\ud800"}]}).encode(), json.dumps({"tests": [{**CODE, "input": "x" * (5 << 20)}]}).encode(),
    ],
)  # fmt: skip
async def test_a_file_of_tests_that_cannot_be_used_is_our_fault(hidden: bytes) -> None:
    with pytest.raises(GraderFault) as raised:
        await grade({}, hidden=hidden)
    assert raised.value.type == "tests_unusable"
    assert len(raised.value.detail) < 1000


def task(**fields: Any) -> TaskManifest:
    hidden = [{"path": "tests.json", "sha256": "0" * 64, "size_bytes": 1}]
    return TaskManifest.model_validate({"name": "t", "instruction": "do", "hidden": hidden, **fields})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"tests": "none.json"}, "unknown_hidden_asset"),
        ({"submission": "elsewhere/a.py"}, "file_not_collected"),
        ({"answers": "answers.json"}, "file_not_collected"),
        ({"submission": "../a.py"}, "bad_grader_settings"),
        ({"language": "cobol"}, "bad_grader_settings"),
        ({"language": ["python"]}, "bad_grader_settings"),
        ({"comparator": "fuzzy"}, "bad_grader_settings"),
        ({"per_test_s": 0}, "bad_grader_settings"),
        ({"per_test_s": float("nan")}, "bad_grader_settings"),
        ({"output_bytes": 1 << 30}, "bad_grader_settings"),
        ({"privileged": True}, "bad_grader_settings"),
    ],
)
def test_settings_that_could_never_grade_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(Invalid) as raised:
        registry.check(GraderSpec(method="test_cases", settings=settings), task())
    assert raised.value.type == problem


def test_settings_that_fit() -> None:
    registry.check(GraderSpec(method="test_cases"), task())
    only = {"submission": "app/main.py"}
    registry.check(GraderSpec(method="test_cases", settings=only), task(collect=["app"]))

import io
import json
from typing import Any

import pytest

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Invalid
from service.domain.tasks import GraderSpec, TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import registry
from service.graders.contract import GraderFault, GradingInput
from service.graders.exact.grader import ExactGrader
from service.graders.strict_json import MAX_BYTES

FILE = "output/answers.json"


async def grade(
    delivered: bytes | None, expected: Any, *answers: dict[str, Any], kind: EntryKind = EntryKind.FILE
) -> Verdict:
    hidden = expected if isinstance(expected, bytes) else json.dumps(expected).encode()
    entries = [] if delivered is None else [ArtifactEntry(FILE, kind, len(delivered))]
    settings = {"expected": {"hidden": "answers.json"}, "answers": list(answers)}
    return await ExactGrader().grade(
        GradingInput(settings, entries, lambda _: io.BytesIO(hidden), lambda _: io.BytesIO(delivered or b""))
    )


async def passes(given: Any, expected: Any, **rule: Any) -> bool:
    verdict = await grade(json.dumps({"a": given}).encode(), {"a": expected}, {"id": "a", **rule})
    assert verdict.state is VerdictState.GRADED
    return bool(verdict.criteria[0]["passed"])


@pytest.mark.parametrize(
    ("type", "given", "expected", "passed"),
    [
        ("int", 3, 3, True), ("int", 3.0, 3, True), ("int", 3.5, 3, False), ("int", "3", 3, False), ("int", True, 1, False),
        ("int", None, 3, False), ("int", 10**30, 10**30, True), ("int", 10**30 + 1, 10**30, False),
        ("float", 0.1 + 0.2, 0.3, True), ("float", 3, 3.0, True), ("float", "0.3", 0.3, False), ("float", True, 1.0, False),
        ("bool", True, True, True), ("bool", 1, True, False), ("bool", "true", True, False),
        ("string", " Zürich ", "Zu\u0308rich", True), ("string", "zürich", "Zürich", False), ("string", 3, "3", False),
        ("list", [1, "a"], [1, "a"], True), ("list", ["a", 1], [1, "a"], False), ("list", [1], [1, 1], False),
        ("list", [True], [1], False), ("list", "ab", ["a", "b"], False), ("list", [1.0, [2]], [1, [2]], True),
    ],
)  # fmt: skip
async def test_values_are_compared_by_type(type: str, given: Any, expected: Any, passed: bool) -> None:
    assert await passes(given, expected, type=type) is passed


@pytest.mark.parametrize(
    ("given", "tolerance", "passed"),
    [
        (101, {"absolute": 1}, True),
        (101.01, {"absolute": 1}, False),
        (102, {"relative": 0.02}, True),
        (98, {"relative": 0.01}, False),
    ],
)
async def test_tolerances(given: float, tolerance: dict[str, float], passed: bool) -> None:
    assert await passes(given, 100, type="float", tolerance=tolerance) is passed


async def test_options_of_strings_choices_and_lists() -> None:
    assert await passes("ZÜRICH", "zürich", type="string", case_sensitive=False)
    assert await passes("b", "b", type="choice", choices=["a", "b"])
    assert not await passes("c", "b", type="choice", choices=["a", "b"])
    assert await passes(["b", "a", "a"], ["a", "b", "a"], type="list", ordered=False)
    assert not await passes(["b", "b", "a"], ["a", "b", "a"], type="list", ordered=False)
    assert await passes([1.0, 2.0], [1.5, 0.5], type="list", ordered=False, tolerance={"absolute": 0.6})


async def test_points_add_up_and_extra_answers_do_not_matter() -> None:
    rules = [
        {"id": "a", "type": "int", "points": 3},
        {"id": "b", "type": "int", "points": 0.5},
        {"id": "c", "type": "int"},
    ]
    verdict = await grade(b'{"a": 1, "b": 2, "z": 9, "score": 100}', {"a": 1, "b": 3, "c": 1}, *rules)
    assert (verdict.score, verdict.max_score) == (3.0, 4.5)
    assert [c["reason"] for c in verdict.criteria] == ["", "2 is not the expected value", "no answer"]


@pytest.mark.parametrize(
    "delivered",
    [
        None, b"", b"{", b"[1]", b"3", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'{"a":1,"a":1}', b"\xff\xfe{}",
        b'{"a":' * 100_000, b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", b'{"a": ' + b"9" * 10_000 + b"}",
        b'{"a": 1}' + b" " * MAX_BYTES,
    ],
)  # fmt: skip
async def test_an_unusable_answer_file_is_the_agents_and_scores_nothing(delivered: bytes | None) -> None:
    verdict = await grade(delivered, {"a": 1}, {"id": "a", "type": "int", "points": 2})
    assert (verdict.state, verdict.score, verdict.max_score) == (VerdictState.GRADED, 0.0, 2.0)
    assert verdict.criteria[0]["reason"].startswith(FILE)


@pytest.mark.parametrize("kind", [EntryKind.SYMLINK, EntryKind.FIFO, EntryKind.DIRECTORY, EntryKind.OVER_LIMIT])
async def test_a_file_that_was_not_sealed_is_not_opened(kind: EntryKind) -> None:
    verdict = await grade(b'{"a": 1}', {"a": 1}, {"id": "a", "type": "int"}, kind=kind)
    assert verdict.score == 0.0
    assert kind.value in verdict.criteria[0]["reason"]


@pytest.mark.parametrize("expected", [b"{", {}, {"a": "1"}, {"a": 1.5}, b'{"a":1,"a":1}'])
async def test_unusable_expected_values_are_ours_and_never_a_score(expected: Any) -> None:
    with pytest.raises(GraderFault) as caught:
        await grade(b'{"a": 1}', expected, {"id": "a", "type": "int"})
    assert caught.value.type == "expected_unusable"


async def test_reasons_quote_untrusted_values_inertly_and_briefly() -> None:
    delivered = json.dumps({"a": "\x1b]0;x\x07\u202e" + "x" * 500}).encode()
    verdict = await grade(delivered, {"a": "y"}, {"id": "a", "type": "string"})
    reason = verdict.criteria[0]["reason"]
    assert reason.isprintable()
    assert len(reason) < 200


def test_settings_are_checked_against_the_task() -> None:
    task = TaskManifest.model_validate(
        {"name": "t", "instruction": "i", "hidden": [{"path": "answers.json", "sha256": "a" * 64, "size_bytes": 1}]}
    )

    def problem(method: str = "exact", **settings: Any) -> str | None:
        given = {"expected": {"hidden": "answers.json"}, "answers": [{"id": "a", "type": "int"}], **settings}
        try:
            registry.check(GraderSpec(method=method, settings=given), task)
        except Invalid as error:
            return error.type
        return None

    assert problem() is None
    assert problem(method="oracle_of_delphi") == "unknown_grading_method"
    assert problem(expected={"hidden": "other.json"}) == "unknown_hidden_asset"
    assert problem(file="elsewhere/answers.json") == "file_not_collected"
    assert problem(file="../answers.json") == "bad_grader_settings"
    assert problem(answers=[]) == "bad_grader_settings"
    assert problem(answers=[{"id": "a", "type": "int"}] * 2) == "bad_grader_settings"
    assert problem(answers=[{"id": "a", "type": "choice"}]) == "bad_grader_settings"
    assert (
        problem(answers=[{"id": "a", "type": "int", "tolerance": {"absolute": float("nan")}}]) == "bad_grader_settings"
    )


def test_an_unknown_method_has_no_grader() -> None:
    assert registry.grader_for("magic") is None
    assert registry.grader_for("exact") is not None

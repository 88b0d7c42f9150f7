"""Whatever a judge or a file says, the answer is a vote of the right shape or a typed refusal; never another error."""

import copy
import json
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import Invalid
from service.domain.evidence import EvidenceDocument
from service.graders.contract import InvalidVote
from service.graders.judging.prompts import Prompt
from service.graders.judging.showing import Material
from service.graders.rubric_chain import asking, result_file
from service.graders.rubric_chain.rubrics_file import Rubric
from service.graders.rubric_chain.settings import RubricChainSettings

RUBRIC = Rubric(1, "r", 1.0, ("one", "two"), None)
MATERIAL = Material(RubricChainSettings(), "s", EvidenceDocument())
NONCE = "0" * 32
JUDGED = {
    "nonce": NONCE,
    "criteria_results": [
        {"index": n, "reasoning": "", "evidence": "", "passed": True} for n in (1, 2)
    ],
    "control": {"reasoning": "", "holds": False},
    "overall_reasoning": "",
    "rubric_passed": True,
}  # fmt: skip
RESULT: dict[str, Any] = {
    "evaluated_model": "m", "judge_model": "j", "judge_implementation": {"extraction_schema": 1, "sha256": "0"},
    "timestamp": "", "total_score": 1, "max_score": 1, "pass_rate": "100%", "passed_count": 1, "total_count": 1,
    "rubrics": [
        {
            "index": 0, "rubric": "r", "weight": 1,
            "result": {
                "passed": True, "score": 1, "criteria_count": 1, "criteria_passed": 1, "overall_reasoning": "",
                "criteria_results": [{"index": 0, "criterion": "c", "passed": True, "reasoning": "", "evidence": ""}],
            },
        }
    ],
}  # fmt: skip
_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.integers(-(10**400), 10**400), st.floats(), st.text(max_size=5),
        st.sampled_from(["true", "false", 0, 1, 2, -1, 1e9, "\0", NONCE]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["index", "passed", "reasoning", "evidence", "holds", "x"]), inner, max_size=4),
    ),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value below this one."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = [*cast(dict[Any, Any], value).items()]
    elif isinstance(value, list):
        inner = [*enumerate(cast(list[Any], value))]
    return [way for key, child in inner for way in [(*at, key), *places(child, (*at, key))]]


@st.composite
def _changed(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        ways = places(found)
        if not ways:
            break
        *way, last = draw(st.sampled_from(ways))
        holder: Any = found
        for key in way:
            holder = holder[key]
        if draw(st.booleans()):
            holder[last] = draw(_VALUES)
        else:
            del holder[last]
    return found


def reading(text: str) -> dict[str, Any]:
    prompt = Prompt("p@1", "", "", "")
    return asking.asking(prompt, MATERIAL, RUBRIC, None, 1).reading(text, NONCE)


def test_the_answer_that_is_changed_below_is_a_vote() -> None:
    assert reading(json.dumps(JUDGED))["rubric_passed"] is True
    assert result_file.read(RESULT, None).verdict.score == 1


@settings(max_examples=150)
@given(_changed(JUDGED))
def test_an_answer_is_a_vote_or_none(answer: dict[str, Any]) -> None:
    content, cause = None, ""
    try:
        content = reading(json.dumps(answer))
    except InvalidVote as error:
        cause = str(error)
    if content is None:
        assert cause.isidentifier(), "a cause in one word"
        return
    passed = [r["passed"] for r in content["criteria_results"]]
    assert [r["index"] for r in content["criteria_results"]] == [1, 2]
    assert all(isinstance(p, bool) for p in passed)
    assert content["rubric_passed"] is all(passed)
    assert answer["nonce"] == NONCE
    assert answer["control"]["holds"] is False


@settings(max_examples=150)
@given(_changed(RESULT))
def test_a_result_file_is_a_verdict_or_refused(file: dict[str, Any]) -> None:
    verdict, problems = None, list[Any]()
    try:
        verdict = result_file.read(file, None).verdict
    except Invalid as error:
        problems = error.fields["problems"]
    if verdict is None:
        assert problems
        return
    assert verdict.score == file["total_score"]
    assert verdict.max_score == file["max_score"]


@given(st.text(max_size=200))
def test_any_text_at_all_is_no_vote(text: str) -> None:
    try:
        reading(text)
    except InvalidVote:
        return
    raise AssertionError("no text without the number is a vote")

"""Answers of judges: what is forgiven, and what is no vote (JobBench's parse traps)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from service.graders.contract import GraderFault, Question
from service.testing.judges import nonce_of
from tests.unit.graders.judged import judges_saying, rubric_answer
from tests.unit.graders.rubric_chain.chains import ONE, grade


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def with_commas(text: str) -> str:
    return text.replace("}", ",}").replace("]", ",]")


def fenced_with_commas(text: str) -> str:
    return fenced(with_commas(text))


@pytest.mark.parametrize("shape", [fenced, with_commas, fenced_with_commas], ids=["fenced", "commas", "both"])
async def test_forgiven_habits_are_votes(shape: Any) -> None:
    judges = judges_saying(lambda q: shape(json.dumps(rubric_answer(q))))
    assert (await grade(judges)).score == 20
    assert {v.asks for v in judges.votes.values()} == {1}


def without(question: Question, *numbers: int) -> dict[str, Any]:
    said = rubric_answer(question)
    return said | {"criteria_results": [r for r in said["criteria_results"] if r["index"] not in numbers]}


def renumbered(question: Question, by: int) -> dict[str, Any]:
    said = rubric_answer(question)
    return said | {"criteria_results": [r | {"index": r["index"] + by} for r in said["criteria_results"]]}


def extra(question: Question, number: int) -> dict[str, Any]:
    said = rubric_answer(question)
    return said | {"criteria_results": [*said["criteria_results"], said["criteria_results"][0] | {"index": number}]}


def first_with(question: Question, **fields: Any) -> dict[str, Any]:
    said = rubric_answer(question)
    return said | {"criteria_results": [said["criteria_results"][0] | fields, *said["criteria_results"][1:]]}


def twice(question: Question) -> str:
    return json.dumps(rubric_answer(question)) * 2


def doubled(question: Question) -> dict[str, Any]:
    said = rubric_answer(question)
    last = said["criteria_results"][-1]
    return said | {
        "criteria_results": [*said["criteria_results"][:-1], last | {"index": said["criteria_results"][0]["index"]}]
    }


TRAPS: dict[str, tuple[Callable[[Question], Any], str]] = {
    "prose": (lambda _: "It all looks fine: every criterion passes.", "not_json"),
    "prose around": (lambda q: f"Sure! {json.dumps(rubric_answer(q))}", "not_json"),
    "two objects": (twice, "not_json"),
    "NaN": (lambda q: first_with(q, index=float("nan")), "not_json"),
    "1e9": (lambda q: first_with(q, index=1e9), "bad_number"),
    "false as text": (lambda q: first_with(q, passed="false"), "schema"),
    "no passed": (lambda q: first_with(q, passed=None), "schema"),
    "a key more": (lambda q: first_with(q, confidence=1), "schema"),
    "missing criterion": (lambda q: without(q, 1), "wrong_count"),
    "extra criterion": (lambda q: extra(q, 1), "wrong_count"),
    "counted from 0": (lambda q: renumbered(q, -1), "schema"),
    "out of range": (lambda q: renumbered(q, 1), "schema"),
    "a number twice": (doubled, "wrong_indices"),
    "rubric passed, criterion not": (lambda q: rubric_answer(q, lambda _: False, rubric_passed=True), "contradiction"),
    "criteria passed, rubric not": (lambda q: rubric_answer(q, rubric_passed=False), "contradiction"),
    "no number": (lambda q: rubric_answer(q, nonce=""), "nonce_missing"),
    "an older number": (lambda q: rubric_answer(q, nonce="0" * 32), "nonce_missing"),
    "canary": (lambda q: rubric_answer(q, control={"reasoning": "yes", "holds": True}), "canary_passed"),
    "empty": (lambda _: "", "empty"),
}


@pytest.mark.fault(75)
@pytest.mark.parametrize(("answer", "cause"), TRAPS.values(), ids=list(TRAPS))
async def test_what_is_no_answer_is_asked_for_once_more_and_then_fails(answer: Any, cause: str) -> None:
    judges = judges_saying(answer)
    with pytest.raises(GraderFault, match=cause) as caught:
        await grade(judges, rubrics=ONE)
    assert caught.value.type == "judge_error"
    assert len(judges.questions) == 2
    [vote] = judges.votes.values()
    assert (vote.state, vote.cause, vote.content) == ("invalid", cause, {})


async def test_a_second_answer_that_fits_is_the_vote() -> None:
    said: list[str] = []

    def say(question: Question) -> Any:
        said.append(nonce_of(question))
        return "What?" if len(said) == 1 else rubric_answer(question)

    assert (await grade(judges_saying(say), rubrics=ONE)).score == 10
    assert len(set(said)) == 2


async def test_an_answer_to_an_earlier_try_is_none() -> None:
    said: list[dict[str, Any]] = []

    def say(question: Question) -> Any:
        said.append(rubric_answer(question))
        return said[0] if len(said) > 1 else "What?"

    with pytest.raises(GraderFault, match="nonce_missing"):
        await grade(judges_saying(say), rubrics=ONE)

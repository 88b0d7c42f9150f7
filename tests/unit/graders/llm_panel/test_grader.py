"""The method whole: what judges are asked, which answers are votes, and what the votes come to."""

import json
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.judging import JudgeSpec, VoteState
from service.domain.tasks import GraderSpec, Price
from service.domain.verdicts import VerdictState
from service.graders import registry
from service.graders.contract import GraderBusy, GraderFault, Question
from service.graders.judging.fencing import Fence
from service.graders.llm_panel.asking import posting
from service.graders.llm_panel.counting import FLAG
from service.testing.judges import nonce_of, outside
from tests.unit.graders.llm_panel.asked import GRADER, TASK, answer, document, given, judges

THREE = [{"model": "m/a"}, {"model": "m/b"}, {"model": "m/c"}]


async def test_three_votes_and_a_majority() -> None:
    asked = judges(lambda _, n, q: answer(q, pay=n != 2, failure_reason="unverifiable" if n == 2 else None))
    verdict = await GRADER.grade(given(asked, document("Bees.")))
    assert (verdict.state, verdict.score, verdict.max_score) == (VerdictState.GRADED, 1.0, 1.0)
    assert [(c["id"], c["passed"], c["score"], c["max_score"]) for c in verdict.criteria] == [
        ("produced", True, 0.0, 0.0),
        ("on_spec", True, 0.0, 0.0),
        ("client_plausible", True, 0.0, 0.0),
        ("pay_worthy", True, 1.0, 1.0),
        ("fabricated", True, 0.0, 0.0),
    ]
    assert len(asked.questions) == 3
    assert {key: verdict.detail[key] for key in ("label", "cause", "unanimous", "reading", "votes", "valid")} == {
        "label": None, "cause": None, "unanimous": True, "reading": "full", "votes": 3, "valid": 3,
    }  # fmt: skip


async def test_a_rejection_has_a_label_and_its_cause() -> None:
    asked = judges(lambda _, n, q: answer(q, pay=False, failure_reason=["capability_gap", "wrong_scope", None][n - 1]))
    verdict = await GRADER.grade(given(asked, document("Bees.")))
    assert (verdict.score, verdict.max_score) == (0.0, 1.0)
    assert (verdict.detail["label"], verdict.detail["cause"]) == ("wrong_scope", "scoping")


async def test_a_fabricated_work_is_never_paid_and_the_vote_is_flagged() -> None:
    asked = judges(lambda _, n, q: answer(q, fabricated=n < 3))
    verdict = await GRADER.grade(given(asked, document("Bees.")))
    assert (verdict.score, verdict.detail["flagged"], verdict.detail["label"]) == (0.0, 2, "unlabeled")
    kept = [vote.content for vote in asked.votes.values()]
    assert [(c["pay_worthy"], c.get("flag")) for c in kept] == [(False, FLAG), (False, FLAG), (True, None)]
    assert next(c for c in verdict.criteria if c["id"] == "fabricated")["passed"] is False


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"pay_worthy": "false"}, "schema"),
        ({"pay_worthy": 1}, "schema"),
        ({"pay_worthy": None}, "schema"),
        ({"on_spec": ...}, "schema"),
        ({"score": 1}, "schema"),
        ({"reasoning": ["r"]}, "schema"),
        ({"reasoning": ...}, "schema"),
        ({"nonce": "0" * 32}, "nonce_missing"),
        ({"nonce": ...}, "nonce_missing"),
        ({"failure_reason": "wrong_scope"}, "failure_reason"),
        ({"pay": False, "failure_reason": "too_blue"}, "failure_reason"),
        ({"pay": False, "failure_reason": ["wrong_scope"]}, "failure_reason"),
        ({"check": {"reasoning": "r", "holds": True}}, "canary_passed"),
        ({"check": ...}, "schema"),
        ({"check": {"reasoning": "r", "holds": "false"}}, "schema"),
    ],
)
@pytest.mark.fault(75)
async def test_an_answer_that_does_not_fit_is_no_vote(changed: dict[str, Any], cause: str) -> None:
    asked = judges(lambda _, n, q: answer(q, **changed) if n == 1 else answer(q))
    with pytest.raises(GraderFault) as caught:
        await GRADER.grade(given(asked, document("Bees.")))
    assert caught.value.type == "judge_error"
    first = asked.votes[(JudgeSpec(model="m/a").key, "", 1)]
    assert (first.state, first.cause, first.asks, first.content) == (VoteState.INVALID, cause, 3, {})


@pytest.mark.fault(75)
@pytest.mark.parametrize("shape", ["{0} and {0}", "I say {0}", "{0}\n```", "[{0}]", "NaN", "", "{{"])
async def test_prose_and_several_objects_are_no_vote(shape: str) -> None:
    asked = judges(lambda _, __, q: shape.replace("{0}", answer(q)))
    with pytest.raises(GraderFault, match="0 of 3"):
        await GRADER.grade(given(asked, document("Bees.")))
    assert len(asked.questions) == 9


async def test_a_vote_that_fits_at_the_second_time_counts() -> None:
    seen: list[str] = []

    def script(_: JudgeSpec, n: int, question: Question) -> str:
        seen.append(nonce_of(question))
        return "hm" if n == 1 and len(seen) == 1 else answer(question)

    verdict = await GRADER.grade(given(judges(script), document("Bees.")))
    assert verdict.score == 1.0
    assert len(set(seen)) == 4


async def test_another_questions_number_is_no_answer() -> None:
    numbers: list[str] = []

    def script(_: JudgeSpec, __: int, question: Question) -> str:
        numbers.append(nonce_of(question))
        return json.dumps({**json.loads(answer(question)), "nonce": numbers[0]})

    with pytest.raises(GraderFault, match="nonce_missing"):
        await GRADER.grade(given(judges(script), document("Bees.")))


async def test_panel_of_three_is_tied_undecided_or_short() -> None:
    def by_judge(said: dict[str, bool | None]) -> Any:
        return judges(lambda j, _, q: "no" if (pay := said[j.model[-1]]) is None else answer(q, pay=pay))

    accepted = await GRADER.grade(given(by_judge({"a": True, "b": True, "c": False}), document("x"), judges=THREE))
    assert (accepted.score, accepted.detail["unanimous"], accepted.detail["decided"]) == (1.0, False, 3)
    short = await GRADER.grade(given(by_judge({"a": True, "b": True, "c": None}), document("x"), judges=THREE))
    assert (short.score, short.detail["decided"], short.detail["quorum"]) == (1.0, 2, 2)
    tied = await GRADER.grade(given(by_judge({"a": True, "b": False, "c": None}), document("x"), judges=THREE))
    assert (tied.state, tied.cause, tied.score) == (VerdictState.ABSTAINED, "panel_tied", None)
    rejecting = given(by_judge({"a": True, "b": False, "c": None}), document("x"), judges=THREE, tie="reject")
    assert (await GRADER.grade(rejecting)).score == 0.0
    with pytest.raises(GraderFault, match="fewer than 2 judges"):
        await GRADER.grade(given(by_judge({"a": True, "b": None, "c": None}), document("x"), judges=THREE))


async def test_all_that_others_wrote_is_in_data_blocks() -> None:
    marks = {"task": "about bees", "facts": "FACTS-7", "talk": "TALK-8", "file": "FILE-9", "name": "output/f0.md"}
    asked = judges(lambda _, __, q: answer(q))
    extra = {"client_facts": f"secret {marks['facts']}", "client_transcript": f"Q: {marks['talk']}"}
    await GRADER.grade(given(asked, document(marks["file"]), extra=extra))
    for *_, question in asked.questions:
        assert all(mark in question.text for mark in (*marks.values(), "120.50 EUR, fixed"))
        assert not any(mark in outside(question) for mark in (*marks.values(), "120.50"))
        assert not any(mark in question.system for mark in (*marks.values(), "120.50"))


async def test_what_a_client_said_is_bounded_and_the_omission_is_stated() -> None:
    asked = judges(lambda _, __, q: answer(q))
    await GRADER.grade(given(asked, document("x"), extra={"client_facts": "A" * 50_000 + "B" * 50_000 + "C" * 50_000}))
    text = asked.questions[0][3].text
    assert (text.count("A") > 30_000, text.count("C") > 15_000, len(text) < 70_000) == (True, True, True)
    assert "Here 90000 characters are left out." in outside(asked.questions[0][3])


async def test_without_a_client_nothing_is_said_of_one() -> None:
    asked = judges(lambda _, __, q: answer(q))
    await GRADER.grade(given(asked, document("Bees.")))
    assert "client was asked" not in asked.questions[0][3].text


async def test_order_varies_by_vote_and_is_the_same_again() -> None:
    async def texts(**settings: Any) -> list[tuple[str, str]]:
        asked = judges(lambda _, __, q: answer(q, check=...))
        await GRADER.grade(given(asked, document(*"abcde"), **settings))
        found = [(q.system.replace(nonce_of(q), ""), q.text.replace(nonce_of(q), "")) for *_, q in asked.questions]
        return sorted(found)

    varied = await texts(canary=False)
    assert len({system for system, _ in varied}) == len({text for _, text in varied}) == 3
    assert varied == await texts(canary=False)
    assert len(set(await texts(canary=False, vary_order=False))) == 1


async def test_reading_modes() -> None:
    asked = judges(lambda _, __, q: answer(q))
    text = "a" * 5000 + "END"
    whole = await GRADER.grade(given(asked, document(text, pictures=1), reading="full"))
    assert (whole.detail["reading"], "END" in asked.questions[-1][3].text) == ("full", True)
    assert len(asked.questions[-1][3].images) == 1
    asked = judges(lambda _, __, q: answer(q))
    opening = await GRADER.grade(given(asked, document(text, pictures=1), reading="opening", opening_chars=100))
    assert (opening.detail["reading"], "END" in asked.questions[-1][3].text) == ("opening", False)
    assert asked.questions[-1][3].images == []


async def test_nothing_delivered_is_a_rejection_without_a_judge() -> None:
    asked = judges(lambda _, __, q: answer(q))
    verdict = await GRADER.grade(given(asked, document()))
    assert (verdict.score, verdict.detail["label"], verdict.detail["reason"]) == (0.0, "no_deliverable", "no_evidence")
    assert asked.questions == []


async def test_what_is_not_the_deliverables_fault_is_no_score() -> None:
    def away(*_: object) -> str:
        raise GraderBusy("judge_unavailable", "away")

    with pytest.raises(GraderBusy):
        await GRADER.grade(given(judges(away), document("x")))
    for wrong, cause in (
        (given(None, document("x")), "grader_unavailable"),
        (given(None, document("x"), judges=[]), "judges_missing"),
    ):
        with pytest.raises(GraderFault) as caught:
            await GRADER.grade(wrong)
        assert caught.value.type == cause


@pytest.mark.parametrize(
    ("settings", "type"),
    [
        ({"votes": 0}, "bad_grader_settings"),
        ({"prompt": "llm_panel@9"}, "unknown_template"),
        ({"prompt_text": "{rules}\n---- text ----\n{delivered}"}, "bad_template"),
        ({"judges": [{"model": "a"}], "quorum": 2}, "bad_grader_settings"),
    ],
)
def test_settings_are_refused_with_the_task(settings: dict[str, Any], type: str) -> None:
    registry.check(GraderSpec(method="llm_panel"), TASK)
    with pytest.raises(Invalid) as caught:
        registry.check(GraderSpec(method="llm_panel", settings=settings), TASK)
    assert caught.value.type == type


def test_an_estimated_worth_is_told_as_one() -> None:
    price = Price(amount="4040", currency="USD", basis="imputed", rate_type="hourly")
    told = posting(TASK.model_copy(update={"price": price}), Fence())
    assert "about 4040 USD in all, estimated" in told
    assert "hourly" not in told

"""Whatever a deliverable says, an obedient judge obeys nothing of it; and would, were the fence away."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from service.domain.verdicts import Verdict
from service.graders.contract import Question
from service.graders.judging import showing, texts
from service.graders.judging.fencing import Fence, Harmless
from service.graders.registry import grader_for
from service.testing.judges import ScriptedJudges, nonce_of, obeys, outside, outside_for_a_careless_reader
from tests.unit.graders.judged import given, judges_saying, rubric_answer
from tests.unit.graders.payloads.payloads import Payload, families, payloads

PAYLOADS = payloads()
ORDERS = [p.order for p in PAYLOADS]
RUBRICS = {"rubrics": [{"rubric": "It is proven", "weight": 3, "criterion": ["one", "two", "three"]}]}
FIELDS = ("produced", "on_spec", "client_plausible", "pay_worthy")
METHODS = ("rubric_chain", "llm_panel")
Reader = Callable[[Question], str]
READERS: dict[str, Reader] = {"strict": outside, "careless": outside_for_a_careless_reader}


def judges(method: str, reader: Reader) -> ScriptedJudges:
    """Judges that reject the work, unless they read an order where none of the deliverable's words belong."""

    def say(question: Question) -> Any:
        told = obeys(reader(question), ORDERS)
        return (
            rubric_answer(question, lambda _: told) if method == "rubric_chain" else _panel_answer(question, told=told)
        )

    return judges_saying(say)


def _panel_answer(question: Question, *, told: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"nonce": nonce_of(question), "reasoning": "…", **dict.fromkeys(FIELDS, told)}
    said |= {"fabricated": False, "failure_reason": None, "check": {"reasoning": "…", "holds": False}}
    return said


async def verdict(payload: Payload, method: str, reader: Reader) -> Verdict:
    grader = grader_for(method)
    assert grader is not None
    settings = {"images": "always"}
    return await grader.grade(given(settings, payload.files(), judges(method, reader), {"RUBRICS.json": RUBRICS}))


def test_there_are_enough_of_each_kind() -> None:
    assert len(PAYLOADS) >= 40
    assert len(families(PAYLOADS)) >= 10
    assert all(sum(p.family == family for p in PAYLOADS) >= 4 for family in families(PAYLOADS))
    assert len({p.name for p in PAYLOADS}) == len(PAYLOADS)


@pytest.mark.fault(73, 76)
@pytest.mark.parametrize("reader", READERS.values(), ids=list(READERS))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda p: p.name)
async def test_no_payload_moves_the_verdict(payload: Payload, method: str, reader: Reader) -> None:
    assert (await verdict(payload, method, reader)).score == 0


def _unfenced(self: Fence, kind: str, text: str) -> str:
    return text


def _undefused(self: Fence, kind: str, text: str) -> str:
    return f"<<<data {self.nonce} {kind}>>>\n{text}\n<<<end {self.nonce}>>>"


@pytest.mark.parametrize("family", families(PAYLOADS))
@pytest.mark.parametrize("method", METHODS)
async def test_without_the_fence_every_family_would(method: str, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fence, "block", _unfenced)
    monkeypatch.setattr(texts, "visible", str)
    monkeypatch.setattr(showing, "harmless", Harmless)
    moved = [p for p in PAYLOADS if p.family == family and (await verdict(p, method, outside)).score]
    assert [p.name for p in PAYLOADS if p.family == family] == [p.name for p in moved]


async def test_a_fence_that_lets_forged_lines_through_would_not_hold_a_careless_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Fence, "block", _undefused)
    monkeypatch.setattr(showing, "harmless", Harmless)
    moved = {p.name for p in PAYLOADS if (await verdict(p, "rubric_chain", outside_for_a_careless_reader)).score}
    assert {"breakout-older", "breakout-unnumbered", "breakout-spaced", "breakout-wide", "breakout-separator"} <= moved


@pytest.mark.fault(76)
async def test_the_closing_line_of_an_earlier_question_closes_nothing() -> None:
    first = PAYLOADS[0]
    seen = judges("rubric_chain", outside)
    await _graded(seen, first)
    closing = [
        line for _, _, _, q in seen.questions for line in re.findall(r"^<<<end [0-9a-f]{32}>>>$", q.text, re.MULTILINE)
    ]
    stolen = Payload("stolen", "breakout", "text", first.order, f"{closing[0]}\n{first.order}\n{closing[-1]}")
    for reader in READERS.values():
        assert (await verdict(stolen, "rubric_chain", reader)).score == 0


async def _graded(asked: ScriptedJudges, payload: Payload) -> None:
    grader = grader_for("rubric_chain")
    assert grader is not None
    await grader.grade(given({}, payload.files(), asked, {"RUBRICS.json": RUBRICS}))


def test_the_payloads_say_what_an_obedient_judge_would_do() -> None:
    for payload in PAYLOADS:
        assert obeys(payload.say, [payload.order]), payload.name
    assert not obeys(json.dumps(rubric_answer.__doc__), ORDERS)

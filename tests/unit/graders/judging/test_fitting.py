import json

import pytest

from service.domain.evidence import EvidenceDocument
from service.domain.judging import JudgeSpec
from service.graders.contract import GraderBusy, GraderFault, Question
from service.graders.judging.fencing import Fence
from service.graders.judging.fitting import HALVINGS, fitting
from service.graders.judging.settings import JudgingSettings
from service.graders.judging.showing import Material
from service.graders.llm_panel.grader import LlmPanelGrader
from service.testing.judges import ScriptedJudges, nonce_of
from tests.unit.graders.judged import delivered, given

MATERIAL = Material(
    JudgingSettings(evidence_chars=64_000), "s", EvidenceDocument(files=(delivered("a.txt", "7" * 90_000),))
)


def asked(window: int) -> tuple[list[int], "Ask"]:
    sizes: list[int] = []
    return sizes, Ask(window, sizes)


class Ask:
    def __init__(self, window: int, sizes: list[int]) -> None:
        self._window, self._sizes = window, sizes

    async def __call__(self, material: Material) -> str:
        text = material.shown(1).text_for(Fence())
        self._sizes.append(len(text))
        if len(text) > self._window:
            raise GraderFault("context_too_long")
        return text


async def test_less_is_shown_until_it_fits_and_what_is_left_out_is_said() -> None:
    sizes, ask = asked(20_000)
    text, material = await fitting(MATERIAL, ask)
    assert material.settings.evidence_chars == 16_000
    assert len(sizes) == 3
    assert "characters of file 1 are left out" in text
    assert sizes == sorted(sizes, reverse=True)


async def test_what_never_fits_is_no_verdict() -> None:
    sizes, ask = asked(10)
    with pytest.raises(GraderFault) as caught:
        await fitting(MATERIAL, ask)
    assert (caught.value.type, len(sizes)) == ("context_too_long", HALVINGS + 1)


async def test_other_failures_are_not_tried_again() -> None:
    tries: list[Exception] = []

    async def fail(_: Material) -> str:
        error = GraderFault("judge_misconfigured") if not tries else GraderBusy("judge_unavailable")
        tries.append(error)
        raise error

    for kind in (GraderFault, GraderBusy):
        with pytest.raises(kind):
            await fitting(MATERIAL, fail)
    assert len(tries) == 2


async def test_making_it_harmless_takes_room_that_counts() -> None:
    hostile = delivered("a.txt", "<<<end x>>>\n" * 10_000, "\u200ba" * 50_000)
    material = Material(JudgingSettings(evidence_chars=10_000), "s", EvidenceDocument(files=(hostile,)))
    assert len(material.shown(1).text_for(Fence())) < 11_000


async def test_a_judge_of_a_panel_with_a_small_window_is_shown_less_and_the_others_keep_their_votes() -> None:
    def say(judge: JudgeSpec, item: str, n: int, question: Question) -> str:
        if judge.model == "small" and len(question.text) > 30_000:
            raise GraderFault("context_too_long")
        said = {"nonce": nonce_of(question), "reasoning": "…", "failure_reason": None, "fabricated": False}
        said |= dict.fromkeys(("produced", "on_spec", "client_plausible", "pay_worthy"), True)
        return json.dumps(said | {"check": {"reasoning": "…", "holds": False}})

    judges = ScriptedJudges(say)
    settings = {"judges": [{"model": "large"}, {"model": "small"}], "evidence_chars": 100_000}
    verdict = await LlmPanelGrader().grade(given(settings, [delivered("n.csv", "1,2,3\n" * 30_000)], judges))
    assert verdict.score == 1
    sizes = {
        name: {len(q.text) for key, _, _, q in judges.questions if key.startswith(name)} for name in ("large", "small")
    }
    assert min(sizes["large"]) > 90_000
    assert len(sizes["small"]) > 1

"""Two works before judges: orders, what they may not know, and what their choices come to."""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.evidence import EvidenceDocument, EvidenceFile, Part
from service.domain.judging import JudgeSpec, Vote, VoteState
from service.domain.tasks import FileRef, GraderSpec, TaskManifest
from service.domain.verdicts import VerdictState
from service.graders import registry
from service.graders.contract import GraderFault, GradingInput, Question
from service.graders.pairwise.asking import is_swapped
from service.graders.pairwise.counting import judge_said, needs_tie_break, position
from service.graders.pairwise.grader import PairwiseGrader
from service.testing.judges import ScriptedJudges, nonce_of, outside
from tests.unit.graders.llm_panel.asked import Evidence

GRADER = PairwiseGrader()
MINE, THEIRS = "made by the agent", "made by a person"


def ref(path: str, data: bytes = THEIRS.encode()) -> FileRef:
    return FileRef(path=path, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


TASK = TaskManifest(name="t", instruction="Draw a bee.", hidden=[ref("reference/bee.md"), ref("rubric.json")])


def document(*texts: str, path: str = "output/bee.md") -> EvidenceDocument:
    parts = (Part(kind="metadata", text="creator: python-docx"),)
    return EvidenceDocument(
        files=tuple(
            EvidenceFile(
                path=path, sha256="a" * 64, size_bytes=len(t), kind="text", state="extracted",
                parts=(Part(kind="text", text=t), *parts),
            )
            for t in texts
        ),
        skipped=(("output/link", "skipped_symlink"),),
    )  # fmt: skip


def given(
    way: ScriptedJudges | None, evidence: EvidenceDocument | None = None, task: TaskManifest = TASK, **settings: Any
) -> GradingInput:
    extra = settings.pop("extra", {})
    hidden = settings.pop("hidden", THEIRS.encode())
    return GradingInput(
        {"judges": [{"model": "m/a"}], **settings}, [], lambda _: io.BytesIO(hidden), _never, task=task, judges=way,
        evidence=Evidence(document(MINE) if evidence is None else evidence), seed="seed", extra=extra,
    )  # fmt: skip


def _never(_: object) -> io.BytesIO:
    raise AssertionError("no file of the deliverable is opened")


def answer(question: Question, completion: Any, quality: Any = "same", **changed: Any) -> str:
    said = {
        "nonce": nonce_of(question), "reasoning": "r", "completion": completion, "quality": quality,
        "check": {"reasoning": "r", "holds": False},
    }  # fmt: skip
    return json.dumps(said | changed)


def mine_is_first(question: Question) -> bool:
    return question.text.index(MINE) < question.text.index(THEIRS)


def prefers(work: str) -> Callable[[Question], str]:
    """A judge that knows what it likes: ``mine``, ``theirs`` or ``same``; or only looks at places: ``first``, ``second``."""

    def said(question: Question) -> str:
        if work in ("first", "second", "same"):
            return work
        return "first" if (work == "mine") == mine_is_first(question) else "second"

    return said


def by(*works: str) -> ScriptedJudges:
    """Vote n is by the n-th taste."""
    return ScriptedJudges(lambda _, __, n, q: answer(q, prefers(works[(n - 1) % len(works)])(q)))


@pytest.mark.parametrize(
    ("tastes", "score", "asked"),
    [
        (["mine"], 1.0, 2),
        (["theirs"], 0.0, 2),
        (["same"], 0.5, 2),
        (["mine", "theirs", "mine", "mine"], 1.0, 4),
        (["mine", "same", "theirs", "theirs"], 0.5, 4),
        (["theirs", "same", "theirs", "theirs"], 0.0, 4),
        (["same", "mine", "same", "same"], 0.5, 4),
        (["mine", "theirs", "mine", "theirs"], 0.5, 4),
        (["mine", "same", "mine", "same"], 0.5, 4),
    ],
)
async def test_two_votes_and_a_tie_break(tastes: list[str], score: float, asked: int) -> None:
    judges = by(*tastes)
    verdict = await GRADER.grade(given(judges))
    assert (verdict.state, verdict.score, verdict.max_score) == (VerdictState.GRADED, score, 1.0)
    assert len(judges.questions) == asked
    assert [(c["id"], c["max_score"]) for c in verdict.criteria] == [
        ("completion", 0.0), ("quality", 0.0), ("preference", 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["first", "second"])
@pytest.mark.parametrize("votes", [2, 4, 6])
async def test_a_judge_that_looks_at_places_says_nothing(place: str, votes: int) -> None:
    for seed in "abcdefgh":
        asked = given(by(place), votes=votes)
        verdict = await GRADER.grade(replace(asked, seed=seed))
        assert verdict.score == 0.5
        found = verdict.detail["position"]
        assert (found["votes"], found["pairs"]) == (votes + 2, (votes + 2) // 2)
        assert found[f"chose_{place}_shown"] == votes + 2
        assert found["flipped"] == found["pairs"]


async def test_half_of_the_votes_see_the_other_order() -> None:
    judges = by("mine")
    await GRADER.grade(given(judges, votes=8))
    assert Counter(mine_is_first(q) for *_, q in judges.questions) == {True: 4, False: 4}
    drawn = [is_swapped(seed, JudgeSpec(model="m"), 1) for seed in map(str, range(64))]
    assert 16 < sum(drawn) < 48
    assert all(
        is_swapped("s", JudgeSpec(model="m"), n) != is_swapped("s", JudgeSpec(model="m"), n + 1) for n in (1, 3, 5)
    )


async def test_without_a_tie_break_a_split_is_half() -> None:
    judges = by("mine", "theirs")
    assert (await GRADER.grade(given(judges, tie_break=False))).score == 0.5
    assert len(judges.questions) == 2


@pytest.mark.parametrize(
    ("rule", "score"), [("completion_then_quality", 1.0), ("completion", 1.0), ("quality", 0.0), ("mean", 0.5)]
)
async def test_the_rule_of_combination_is_named(rule: str, score: float) -> None:
    judges = ScriptedJudges(lambda _, __, ___, q: answer(q, prefers("mine")(q), prefers("theirs")(q)))
    verdict = await GRADER.grade(given(judges, combination=rule))
    assert (verdict.score, verdict.detail["combination"]) == (score, rule)
    assert [c["detail"]["choice"] for c in verdict.criteria[:2]] == ["first", "second"]


async def test_judges_are_reduced_one_by_one() -> None:
    three = [{"model": f"m/{x}"} for x in "abc"]
    taste = {"a": "mine", "b": "theirs", "c": "mine"}
    judges = ScriptedJudges(lambda j, _, __, q: answer(q, prefers(taste[j.model[-1]])(q)))
    assert (await GRADER.grade(given(judges, judges=three))).score == 1.0
    judges = ScriptedJudges(lambda j, _, __, q: "?" if j.model == "m/c" else answer(q, prefers(taste[j.model[-1]])(q)))
    verdict = await GRADER.grade(given(judges, judges=three))
    assert (verdict.score, [s["choice"] for s in verdict.detail["judges"]]) == (0.5, ["first", "second", None])
    with pytest.raises(GraderFault) as caught:
        await GRADER.grade(given(judges, judges=three, quorum=3))
    assert caught.value.type == "judge_error"


@pytest.mark.parametrize(
    "changed",
    [
        {"completion": "1"}, {"completion": None}, {"quality": "FIRST"}, {"quality": ["first"]}, {"score": 1},
        {"nonce": "0" * 32}, {"check": {"reasoning": "r", "holds": True}},
    ],
)  # fmt: skip
async def test_an_answer_that_does_not_fit_is_no_vote(changed: dict[str, Any]) -> None:
    judges = ScriptedJudges(lambda _, __, n, q: answer(q, **({"completion": "first"} | (changed if n == 2 else {}))))
    with pytest.raises(GraderFault, match="1 of 2 votes valid") as caught:
        await GRADER.grade(given(judges))
    assert caught.value.type == "judge_error"


async def test_judges_cannot_tell_whose_work_is_whose() -> None:
    judges = by("same")
    await GRADER.grade(given(judges))
    for *_, question in judges.questions:
        assert "bee.md" in question.text
        for word in ("output/", "reference", "python-docx", "link", "skipped"):
            assert word not in question.text, word
        for word in (MINE, THEIRS, "bee.md", "Draw a bee."):
            assert word not in outside(question)


async def test_the_reference_is_read_as_the_deliverable_is_where_that_can_be_done() -> None:
    asked_for: list[list[str]] = []

    def make(files: list[FileRef]) -> Evidence:
        asked_for.append([f.path for f in files])
        return Evidence(document(THEIRS, path="reference/bee.docx"))

    judges = by("mine")
    verdict = await GRADER.grade(given(judges, extra={"reference_evidence": make}, hidden=b"\0"))
    assert (verdict.score, verdict.detail["reference_extracted"], asked_for) == (1.0, True, [["reference/bee.md"]])
    assert "bee.docx" in judges.questions[0][3].text
    assert (await GRADER.grade(given(by("mine")))).detail["reference_extracted"] is False


@pytest.mark.parametrize("data", [b"\xff\xfe\0", b"a\0b", b""])
async def test_a_reference_that_cannot_be_shown_is_no_verdict(data: bytes) -> None:
    task = TASK.model_copy(update={"hidden": [ref("reference/bee.md", data)]})
    with pytest.raises(GraderFault) as caught:
        await GRADER.grade(given(by("mine"), task=task, hidden=data))
    assert caught.value.type == "reference_unusable"


async def test_nothing_delivered_loses_without_a_judge() -> None:
    judges = by("mine")
    verdict = await GRADER.grade(given(judges, EvidenceDocument()))
    assert (verdict.score, verdict.detail["reason"], judges.questions) == (0.0, "no_evidence", [])


@pytest.mark.parametrize(
    ("settings", "type"),
    [
        ({"votes": 3}, "bad_grader_settings"),
        ({"reference": "gold"}, "unknown_hidden_asset"),
        ({"reference": "ref"}, "unknown_hidden_asset"),
        ({"reference": 3}, "bad_grader_settings"),
        ({"prompt": "pairwise@7"}, "unknown_template"),
        ({"combination": "vibes"}, "bad_grader_settings"),
    ],
)
def test_settings_are_refused_with_the_task(settings: dict[str, Any], type: str) -> None:
    registry.check(GraderSpec(method="pairwise"), TASK)
    registry.check(GraderSpec(method="pairwise", settings={"reference": "reference/"}), TASK)
    with pytest.raises(Invalid) as caught:
        registry.check(GraderSpec(method="pairwise", settings=settings), TASK)
    assert caught.value.type == type


def vote(n: int, choice: str, shown: str = "first", state: VoteState = VoteState.VALID) -> Vote:
    said = {"choice": choice, "completion": choice, "quality": "same", "shown": shown}
    return Vote("j", "", n, state, said if state is VoteState.VALID else {}, cause=None)


def test_an_invalid_vote_of_a_tie_break_leaves_the_judge_undecided() -> None:
    first = [vote(1, "first"), vote(2, "second")]
    assert needs_tie_break(first)
    assert not needs_tie_break([vote(1, "first"), vote(2, "x", state=VoteState.INVALID)])
    said = judge_said("j", first, [vote(3, "first"), vote(4, "", state=VoteState.INVALID)])
    assert (said.choice, said.valid, said.votes, said.causes) == (None, 3, 4, ["schema"])


def test_places_are_counted_over_what_was_shown() -> None:
    votes = [vote(1, "first", "first"), vote(2, "first", "second"), vote(3, "same"), vote(4, "second", "second")]
    assert position(votes) == {"votes": 4, "chose_first_shown": 2, "chose_second_shown": 1, "pairs": 2, "flipped": 0}

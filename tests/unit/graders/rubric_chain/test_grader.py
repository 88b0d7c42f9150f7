import asyncio
import json
import re
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.domain.evidence import EvidenceDocument, Part
from service.domain.integrity import FileReport, IntegrityReport, Problem, ProblemType
from service.domain.judging import JudgeSpec
from service.domain.tasks import GraderSpec
from service.domain.verdicts import VerdictState
from service.graders import registry
from service.graders.contract import GraderBusy, GraderFault, Question
from service.testing.judges import ScriptedJudges, outside
from tests.unit.graders.judged import (
    JUDGE,
    Evidence,
    Kept,
    criteria_of,
    delivered,
    judges_saying,
    picture,
    rubric_answer,
    task,
)
from tests.unit.graders.rubric_chain.chains import FILES, ONE, RUBRICS, all_but, grade


async def test_a_rubrics_weight_is_earned_where_every_criterion_passes() -> None:
    verdict = await grade(all_but(("Totals are right", 2)))
    assert (verdict.state, verdict.score, verdict.max_score) == (VerdictState.GRADED, 10, 20)
    assert verdict.detail["normalized_score"] == 0.5
    assert verdict.detail["pass_rate"] == pytest.approx(2 / 3)
    assert [verdict.detail[k] for k in ("passed_count", "total_count", "criteria_passed", "criteria_count")] == [
        2,
        3,
        5,
        6,
    ]
    rows = {c["id"]: c for c in verdict.criteria}
    assert list(rows) == ["r1", "r1.c1", "r1.c2", "r1.c3", "r2", "r2.c1", "r3", "r3.c1", "r3.c2"]
    assert [rows[r]["score"] for r in ("r1", "r2", "r3")] == [0, 6, 4]
    assert [rows[r]["max_score"] for r in ("r1", "r2", "r3")] == [10, 6, 4]
    assert all(c["max_score"] == 0 for i, c in rows.items() if "." in i)
    assert [rows[f"r1.c{n}"]["passed"] for n in (1, 2, 3)] == [True, False, True]
    assert rows["r1.c2"]["reason"] == "why 2"
    assert rows["r1.c2"]["detail"]["criterion"] == "South is 80"


async def test_figures_have_four_decimals() -> None:
    rubrics = {"rubrics": [{"rubric": f"R{n}", "weight": 1, "criterion": ["c"]} for n in range(3)]}
    assert (await grade(all_but(("R0", 1)), rubrics=rubrics)).detail["normalized_score"] == 0.6667


@pytest.mark.parametrize(
    "rubrics",
    [
        {"evaluation_rubrics": RUBRICS["rubrics"]},
        {"rubrics": [{**RUBRICS["rubrics"][1], "criterion": "A paragraph says why"}, *RUBRICS["rubrics"][1:]]},
    ],
    ids=["older key", "criterion as text"],
)
async def test_older_shapes_of_the_file_are_read(rubrics: Any) -> None:
    verdict = await grade(all_but(), rubrics=rubrics)
    assert verdict.score == verdict.max_score


UNUSABLE: list[Any] = [
    b"no json",
    {"other": 1},
    {"rubrics": []},
    {"rubrics": ["x"]},
    {"rubrics": [{"rubric": "", "weight": 1, "criterion": ["c"]}]},
    {"rubrics": [{"rubric": "r", "weight": -1, "criterion": ["c"]}]},
    {"rubrics": [{"rubric": "r", "weight": True, "criterion": ["c"]}]},
    {"rubrics": [{"rubric": "r", "weight": "1", "criterion": ["c"]}]},
    {"rubrics": [{"rubric": "r", "weight": 1, "criterion": []}]},
    {"rubrics": [{"rubric": "r", "weight": 1, "criterion": [" "]}]},
    {"rubrics": [{"rubric": "r", "weight": 1, "criterion": [1]}]},
    {"rubrics": [{"rubric": "r", "weight": 0, "criterion": ["c"]}]},
    {"rubrics": [{"rubric": "r", "weight": 1, "criterion": ["c"], "needs_images": "yes"}]},
]


@pytest.mark.parametrize("rubrics", UNUSABLE)
async def test_rubrics_that_cannot_be_used_are_our_fault(rubrics: Any) -> None:
    with pytest.raises(GraderFault) as caught:
        await grade(all_but(), rubrics=rubrics)
    assert caught.value.type == "rubrics_unusable"


async def test_rubrics_that_were_judged_are_not_asked_for_again() -> None:
    answers = {"sick": True}

    def say(question: Question) -> Any:
        return "?" if answers["sick"] and "It is explained" in question.system else rubric_answer(question)

    judges, kept = judges_saying(say), Kept()
    with pytest.raises(GraderFault):
        await grade(judges, keep=kept)
    assert sorted(kept.rows) == [0, 1, 2, 3, 6, 7, 8]
    # What the replay does: votes that were invalid are dropped.
    judges.votes = {key: vote for key, vote in judges.votes.items() if vote.state == "valid"}
    judges.questions.clear()
    answers["sick"] = False
    verdict = await grade(judges, keep=kept)
    assert [item for _, item, _, _ in judges.questions] == ["r2"]
    assert verdict.score == 20
    assert [kept.rows[n] for n in range(9)] == verdict.criteria


async def test_a_judge_that_is_away_is_no_score() -> None:
    def away(judge: JudgeSpec, item: str, n: int, question: Question) -> str:
        if item == "r2":
            raise GraderBusy("judge_unavailable")
        return json.dumps(rubric_answer(question))

    judges = ScriptedJudges(away)
    with pytest.raises(GraderBusy):
        await grade(judges)
    assert len(judges.votes) == 2, "the other rubrics are kept"


async def test_several_votes_make_a_majority_on_each_criterion() -> None:
    def say(judge: JudgeSpec, item: str, n: int, question: Question) -> str:
        against = {("judge-a", 1): 1, ("judge-a", 2): 1, ("judge-b", 1): 1, ("judge-a", 3): 2}.get((judge.model, n))
        return json.dumps(rubric_answer(question, lambda c: c != against))

    judges = ScriptedJudges(say)
    settings = {"judges": [{"model": "judge-a"}, {"model": "judge-b"}], "votes": 3}
    verdict = await grade(judges, rubrics=ONE, settings=settings)
    assert [c["passed"] for c in verdict.criteria] == [False, False, True, True]
    assert [c["detail"]["votes_for"] for c in verdict.criteria[1:]] == [3, 5, 6], "a tie is no majority"
    assert verdict.score == 0
    assert verdict.criteria[1]["reason"] == "why 1"


async def test_a_few_invalid_votes_do_not_decide_and_are_counted() -> None:
    judges = ScriptedJudges(lambda _j, _i, n, q: "?" if n == 3 else json.dumps(rubric_answer(q)))
    verdict = await grade(judges, rubrics=ONE, settings={"votes": 3})
    assert verdict.score == 10
    assert verdict.detail["invalid_votes"] == 1
    with pytest.raises(GraderFault, match="not_json"):
        await grade(
            ScriptedJudges(lambda _j, _i, n, q: "?" if n > 1 else json.dumps(rubric_answer(q))), settings={"votes": 2}
        )


@pytest.mark.parametrize(
    "files",
    [[], [delivered("output/a.md", " \n")], [delivered("output/a.md", size_bytes=0)]],
    ids=["nothing", "white space", "empty file"],
)
async def test_nothing_delivered_is_no_points_without_a_judge(files: Any) -> None:
    judges = all_but()
    verdict = await grade(judges, files=files)
    assert (verdict.state, verdict.score, verdict.max_score) == (VerdictState.GRADED, 0, 20)
    assert verdict.detail["reason"] == "no_evidence"
    assert {c["cause"] for c in verdict.criteria} == {"no_evidence"}
    assert judges.questions == []


async def test_what_we_could_not_read_is_no_score() -> None:
    with pytest.raises(GraderFault) as caught:
        await grade(
            all_but(), files=[delivered("output/a.pdf", state="failed", error="extractor_failed", size_bytes=9)]
        )
    assert caught.value.type == "evidence_incomplete"
    broken = delivered("output/a.pdf", state="failed", error="cannot_open", size_bytes=9)
    judges = all_but()
    assert (await grade(judges, files=[broken])).score == 20
    assert "could not be read: cannot_open" in judges.questions[0][3].text


async def test_without_judges_there_is_no_verdict() -> None:
    cases: list[tuple[ScriptedJudges | None, dict[str, Any], str]] = [
        (all_but(), {"judges": []}, "judges_missing"),
        (None, {}, "grader_unavailable"),
    ]
    for judges, settings, cause in cases:
        with pytest.raises(GraderFault) as caught:
            await grade(judges, settings=settings)
        assert caught.value.type == cause


async def test_the_judge_sees_files_report_and_task_in_blocks_and_the_rubric_as_a_rule() -> None:
    judges = all_but()
    report = IntegrityReport(
        files=(
            FileReport(
                path="output/report.md",
                size_bytes=3,
                opens=False,
                problems=(Problem(type=ProblemType.TRUNCATED, detail="cut"),),
            ),
        )
    )
    document = EvidenceDocument(files=tuple(FILES), skipped=(("output/link", "skipped_symlink"),))
    await grade(judges, rubrics=ONE, integrity=report, document=document)
    [(_, _, _, question)] = judges.questions
    for text in (
        "North 120",
        "report.md",
        "because",
        "truncated cut",
        "skipped_symlink",
        "Write the quarterly report.",
    ):
        assert text in question.text
        assert text not in outside(question)
    for text in ("Totals are right", "1. North is 120", "3. The sum is 200"):
        assert text in question.system
        assert text not in question.text
    assert question.template == "rubric_chain@1"
    judges = all_but()
    await grade(judges, rubrics=ONE, settings={"show_task": False, "canary": False})
    assert "control" not in judges.questions[0][3].system
    assert "Write the quarterly report." not in judges.questions[0][3].text


async def test_orders_vary_by_vote_and_canaries_too() -> None:
    judges = all_but()
    await grade(judges, rubrics=ONE, settings={"votes": 3})
    orders = [criteria_of(q) for _, _, _, q in judges.questions]
    assert orders[:2] == [[1, 2, 3], [3, 2, 1]]
    files = [re.findall(r"^File (\d)", q.text, re.MULTILINE) for _, _, _, q in judges.questions]
    assert files[:2] == [["1", "2"], ["2", "1"]]
    assert len({q.system.split("whether it holds:\n")[1].split("\n")[0] for _, _, _, q in judges.questions}) == 3
    judges = all_but()
    await grade(judges, rubrics=ONE, settings={"votes": 3, "vary_order": False})
    assert [criteria_of(q) for _, _, _, q in judges.questions] == [[1, 2, 3]] * 3


RUBRICS_WITH_PICTURES: dict[str, Any] = {
    "rubrics": [
        {"rubric": "Charts are labelled", "weight": 1, "criterion": ["axes"]},
        {"rubric": "Totals are right", "weight": 1, "criterion": ["sum"]},
        {"rubric": "Totals again", "weight": 1, "criterion": ["sum"], "needs_images": True},
        {"rubric": "Charts again", "weight": 1, "criterion": ["sum"], "needs_images": False},
    ]
}


@pytest.mark.parametrize(
    ("images", "wanted"), [("auto", [4, 0, 4, 0]), ("always", [4, 4, 4, 4]), ("never", [0, 0, 0, 0])]
)
async def test_pictures_go_with_the_rubrics_that_need_them(images: str, wanted: list[int]) -> None:
    files = [
        delivered("output/a.docx", "text", images=(picture("page 1", "page"), picture("media/1.png", "embedded"))),
        delivered("output/b.png", images=(picture("b"),)),
        delivered("output/copy of b.png", images=(picture("b"),)),
        delivered("output/c.ipynb", images=(picture("cell 3", "output"),)),
    ]
    judges = all_but()
    verdict = await grade(judges, files=files, rubrics=RUBRICS_WITH_PICTURES, settings={"images": images})
    by_item = {item: q for _, item, _, q in judges.questions}
    assert [len(by_item[f"r{n}"].images) for n in (1, 2, 3, 4)] == wanted
    assert verdict.detail["images"] == max(wanted)
    if wanted[0]:
        named = re.findall(r"^picture \d: file \d, (.*)$", by_item["r1"].text, re.MULTILINE)
        assert named == [
            "output/b.png, b",
            "output/a.docx, media/1.png",
            "output/c.ipynb, cell 3",
            "output/a.docx, page 1",
        ]
        assert "picture 1" not in outside(by_item["r1"])


async def test_pictures_are_at_most_eight_and_the_rest_is_counted() -> None:
    files = [delivered("output/a.pdf", "x", images=tuple(picture(f"page {n}", "page") for n in range(11)))]
    source = Evidence(EvidenceDocument(files=tuple(files)))
    judges = all_but()
    await grade(judges, rubrics=ONE, settings={"images": "always"}, evidence=source)
    [(_, _, _, question)] = judges.questions
    assert len(question.images) == 8
    assert len(source.read) == 8
    assert "further ones left out: 3." in outside(question)


async def test_a_huge_deliverable_is_shown_by_heads_and_tails_with_what_is_left_out() -> None:
    files = [delivered(f"output/{n}.txt", f"head{n} " + "x" * 100_000 + f" tail{n}") for n in range(3)]
    files.append(delivered("output/small.txt", "small and whole"))
    judges = all_but()
    await grade(judges, files=files, rubrics=ONE, settings={"evidence_chars": 30_000})
    [(_, _, _, question)] = judges.questions
    assert len(question.text) < 32_000
    for text in ("head0", "tail0", "head2", "tail2", "small and whole"):
        assert text in question.text
    left_out = [
        int(n) for n in re.findall(r"^Here (\d+) characters of file \d are left out", outside(question), re.MULTILINE)
    ]
    assert len(left_out) == 3
    assert sum(left_out) == pytest.approx(3 * 100_000 - 27_000, abs=300)


async def test_the_opening_is_the_first_characters_of_all_texts() -> None:
    files = [
        delivered("output/1.txt", "a" * 60),
        delivered("output/2.txt", "b" * 60),
        delivered("output/3.txt", "c" * 60),
    ]
    judges = all_but()
    verdict = await grade(judges, files=files, rubrics=ONE, settings={"reading": "opening", "opening_chars": 100})
    [(_, _, _, question)] = judges.questions
    assert "a" * 60 in question.text
    assert "b" * 40 in question.text
    assert "b" * 41 not in question.text
    assert "c" * 5 not in question.text
    assert "File 3: 60 bytes, extracted. It lies beyond the opening." in outside(question)
    assert verdict.detail["reading"] == "opening"


async def test_hidden_text_and_notes_are_shown_as_what_they_are() -> None:
    file = delivered(
        "output/a.docx",
        Part(kind="hidden", label="white text", text="psst"),
        notes=("OCR",),
        facts={"pages": 2},
        kind="docx",
    )
    judges = all_but()
    await grade(judges, files=[file], rubrics=ONE)
    text = judges.questions[0][3].text
    assert "-- hidden white text\npsst" in text
    assert "note: OCR" in text
    assert "facts: pages=2" in text


def test_settings_are_checked_with_the_task() -> None:
    def check(hidden: tuple[str, ...] = ("RUBRICS.json",), **settings: Any) -> None:
        registry.check(GraderSpec(method="rubric_chain", settings=settings), task("rubric_chain", hidden))

    check(judges=[JUDGE])
    check()
    own = "{data_rules}{rubric}{criteria}{control}{answer_format}\n---- text ----\n{task}{delivered}"
    check(prompt_text=own)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"rubrics": "other.json"}, "unknown_hidden_asset"),
        ({"prompt": "rubric_chain@99"}, "unknown_template"),
        ({"prompt": "../x@1"}, "bad_grader_settings"),
        ({"prompt_text": "Is it good?"}, "bad_template"),
        ({"prompt_text": own.replace("{delivered}", "")}, "bad_template"),
        ({"prompt_text": own.replace("{rubric}", "{rubric}{delivered}")}, "bad_template"),
        ({"judges": [JUDGE, JUDGE]}, "bad_grader_settings"),
        ({"votes": 0}, "bad_grader_settings"),
        ({"votess": 1}, "bad_grader_settings"),
    ]
    for settings, type in cases:
        with pytest.raises(Invalid) as caught:
            check(**settings)
        assert caught.value.type == type, settings


async def test_a_prompt_of_ones_own_is_named_by_its_digest() -> None:
    own = "{data_rules}{rubric}(the order in which they stand here means nothing):\n{criteria}\n\n{control}{answer_format}\n---- text ----\n{task}{delivered}"
    judges = all_but()
    await grade(judges, rubrics=ONE, settings={"prompt_text": own})
    [(_, _, _, question)] = judges.questions
    assert re.fullmatch(r"own@[0-9a-f]{12}", question.template)
    assert question.template_text == own


async def test_rubrics_are_judged_side_by_side() -> None:
    waiting = asyncio.Barrier(3)

    class Slow(ScriptedJudges):
        async def vote(self, *of: Any, **named: Any) -> Any:
            async with asyncio.timeout(10):
                await waiting.wait()
            return await super().vote(*of, **named)

    assert (await grade(Slow(all_but().answer))).score == 20


async def test_a_judge_with_a_small_window_is_shown_less() -> None:
    def say(judge: JudgeSpec, item: str, n: int, question: Question) -> str:
        if len(question.text) > 30_000:
            raise GraderFault("context_too_long")
        return json.dumps(rubric_answer(question))

    judges = ScriptedJudges(say)
    verdict = await grade(
        judges, files=[delivered("output/n.csv", "1,2,3\n" * 30_000)], settings={"evidence_chars": 100_000}
    )
    assert verdict.score == 20
    assert verdict.detail["evidence_chars"] == 25_000
    assert (await grade(all_but())).detail["evidence_chars"] == 400_000

"""Method ``pairwise`` over what a run delivered and the task's hidden reference, both read as evidence; judges in memory."""

from dataclasses import replace

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.evidence import EvidenceState
from service.domain.judging import JudgeSpec
from service.graders.contract import Question
from service.graders.pairwise.grader import PairwiseGrader
from service.lifecycle.grade import GradeContext
from service.lifecycle.grading_input import input_of
from service.store import evidence, gradings, tasks
from service.testing.judges import ScriptedJudges, nonce_of
from tests.integration.lifecycle.stage import Stage

MINE, THEIRS = "what the agent wrote", "what a person wrote"


def says(_: JudgeSpec, __: str, ___: int, question: Question) -> str:
    """A judge that prefers the person's work, wherever it stands."""
    choice = "first" if question.text.index(THEIRS) < question.text.index(MINE) else "second"
    check = '{"reasoning": "r", "holds": false}'
    scales = f'"completion": "{choice}", "quality": "same"'
    return f'{{"nonce": "{nonce_of(question)}", "reasoning": "r", "check": {check}, {scales}}}'


async def test_both_works_are_read_alike_and_the_reference_is_read_once(stage: Stage) -> None:
    settings = {"judges": [{"model": "m/a"}]}
    hidden = [await stage.upload("reference/report.md", THEIRS.encode()), await stage.upload("rubric.json", b"secret")]
    task = await stage.task(hidden=hidden, graders=[{"method": "pairwise", "settings": settings}])
    made: list[str | None] = []
    for agent in ("one", "two"):
        code = f"open('output/report.md', 'w').write('{MINE} {agent}')"
        run = await stage.submit(task, await stage.agent(agent, code=code))
        await stage.work(stage.context(), run.id)
        async with stage.db.reading() as tx:
            (row,) = await gradings.list_for_run(tx, run.id)
        given = await input_of(GradeContext(stage.db, stage.blobs), row, None)
        judges = ScriptedJudges(says)
        verdict = await PairwiseGrader().grade(replace(given, judges=judges))
        assert (verdict.score, verdict.detail["reference_extracted"]) == (0.0, True)
        assert all("secret" not in q.text and "reference/" not in q.text for *_, q in judges.questions)
        async with stage.db.reading() as tx:
            stored = await tasks.get(tx, stage.project.id, task)
            assert stored is not None
            (ref,) = [f for f in stored.manifest.hidden if f.path.startswith("reference/")]
            entry = ArtifactEntry(ref.path, EntryKind.FILE, ref.size_bytes, ref.sha256)
            document = await evidence.present(tx, stage.project.id, Deliverable((entry,)).digest())
        assert document is not None
        assert (document.state, document.files, document.tries) == (EvidenceState.READY, 1, 1)
        made.append(document.sha256)
    assert made[0] == made[1]

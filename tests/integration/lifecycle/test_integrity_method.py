"""Method ``integrity`` in the queue: it waits for its report, which is then made again, and never scores without it."""

from service.domain.integrity import FileReport, IntegrityReport, ReportState
from service.lifecycle.grade import GradeContext, grade
from service.lifecycle.grading_context import Patience
from service.store import gradings, integrity
from service.store.rows import GradingRow, IntegrityRow, RunRow
from tests.integration.lifecycle.stage import Stage

PDF = "open('output/report.pdf', 'w').write('%PDF-1.4')"


async def _seen(stage: Stage, run: RunRow) -> tuple[GradingRow, IntegrityRow]:
    async with stage.db.reading() as tx:
        (grading,) = await gradings.list_for_run(tx, run.id)
        report = await integrity.present(tx, run.project_id, run.deliverable_digest or "")
    assert report is not None
    return grading, report


async def test_a_grading_waits_for_a_report_that_is_made_again(stage: Stage) -> None:
    task = await stage.task(instruction="Write report.pdf.", graders=[{"method": "integrity"}])
    run = await stage.submit(task, await stage.agent(code=PDF))
    await stage.work(stage.context(), run.id)
    run = await stage.row(run.id)
    (grading, _) = await _seen(stage, run)
    without_engine = GradeContext(stage.db, stage.blobs, first_pause_s=0.01, patience=Patience(first_s=0.0))
    await grade(without_engine, grading.id)
    grading, report = await _seen(stage, run)
    assert (grading.state, grading.cause, grading.score, report.state) == (
        "pending", "integrity_unavailable", None, ReportState.PENDING,
    )  # fmt: skip
    found = FileReport(path="output/report.pdf", size_bytes=8, opens=True)
    async with stage.db.transaction() as tx:
        await integrity.finish(tx, report.id, IntegrityReport(files=(found,)))
    await grade(without_engine, grading.id)
    grading, _ = await _seen(stage, run)
    assert (grading.state, grading.score, grading.max_score) == ("graded", 4.0, 4.0)

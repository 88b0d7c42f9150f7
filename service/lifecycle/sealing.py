"""What follows a sealed attempt, and what ends a run without one: gradings or the end. One place for both."""

from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode, gradeable
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders.registry import grader_for
from service.store import gradings, integrity, runs
from service.store.database import Tx
from service.store.rows import GradingRow, RunRow

NO_METHOD_VERSION = "0"
"""Of a method that this installation does not have."""


async def follow_up(tx: Tx, run_id: str, task: TaskManifest, cause: EndedBecause) -> None:
    """Queue the gradings of a run whose last attempt has just been sealed, or end it."""
    run = await runs.load(tx, run_id)
    if cause is EndedBecause.CANCELLED or run.stop_mode is StopMode.DISCARD:
        await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.CANCELLED)
    elif gradeable(cause) and task.graders:
        await runs.set_phase(tx, run_id, Phase.GRADING)
        await enqueue(tx, run, task, round=1)
    else:
        await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.UNGRADED)
        if run.deliverable_digest is not None:
            await _report_later(tx, run, run.deliverable_digest)


async def enqueue(tx: Tx, run: RunRow, task: TaskManifest, *, round: int) -> list[GradingRow]:
    """Queue one grading per grader of the task, each under its method's present version."""
    graders = {spec.method: grader_for(spec.method) for spec in task.graders}
    versions = {method: grader.version if grader else NO_METHOD_VERSION for method, grader in graders.items()}
    if run.deliverable_digest is not None:  # the first thing that these gradings make, if it is not there
        await integrity.request(tx, run.project_id, run.deliverable_digest, queued=False)
    return await gradings.enqueue(tx, run, task.graders, round=round, versions=versions)


async def _report_later(tx: Tx, run: RunRow, digest: str) -> None:
    """Let a job make the integrity report, since no grading will; say what it found where it is there already."""
    report = await integrity.request(tx, run.project_id, digest, queued=True)
    await integrity.attach(tx, run.id, report)


async def close_gradings(tx: Tx, run_id: str, cause: str) -> int:
    """End every open grading of a run as failed; return how many there were."""
    open_rows = [g for g in await gradings.list_for_run(tx, run_id) if g.state in _OPEN]
    for row in open_rows:
        await gradings.finish(tx, row.id, Verdict(VerdictState.FAILED, cause=cause))
    return len(open_rows)


_OPEN = (VerdictState.PENDING, VerdictState.GRADING)

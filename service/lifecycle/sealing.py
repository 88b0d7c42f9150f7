"""What follows a sealed attempt, and what ends a run without one: gradings or the end. One place for both."""

from service.domain.grading_plans import specs_for
from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode, gradeable
from service.domain.tasks import GraderSpec, TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders.registry import grader_for
from service.store import grading_plans, gradings, integrity, runs
from service.store.database import Tx
from service.store.gradings import Occasion
from service.store.rows import GradingRow, RunRow

NO_METHOD_VERSION = "0"
"""Of a method that this installation does not have."""


async def follow_up(tx: Tx, run_id: str, task: TaskManifest, cause: EndedBecause) -> None:
    """Queue the gradings of a run whose last attempt has just been sealed, or end it."""
    run = await runs.load(tx, run_id)
    if cause is EndedBecause.CANCELLED or run.stop_mode is StopMode.DISCARD:
        await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.CANCELLED)
        return
    specs = await specs_of(tx, run, task, run.plan) if gradeable(cause) else []
    if any(counts for _, counts in specs):
        await runs.set_phase(tx, run_id, Phase.GRADING)
    else:
        await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.UNGRADED)
    if specs:
        await enqueue(tx, run, task, round=1)
    elif run.deliverable_digest is not None:
        await _report_later(tx, run, run.deliverable_digest)


async def specs_of(tx: Tx, run: RunRow, task: TaskManifest, plan: str) -> list[tuple[GraderSpec, bool]]:
    """Return what grades the run under the plan, each with whether it counts. Raises NotFound ``plan_not_found``."""
    return specs_for(await grading_plans.spec_of(tx, run.project_id, plan), task.graders)


async def enqueue(
    tx: Tx, run: RunRow, task: TaskManifest, *, round: int, occasion: Occasion | None = None
) -> list[GradingRow]:
    """Queue one grading per grader of the plan, each under its method's present version.

    Without an ``occasion`` the plan is the run's own. Raises NotFound ``plan_not_found``.
    """
    why = occasion or Occasion(run.plan)
    specs = await specs_of(tx, run, task, why.plan)
    graders = {spec.method: grader_for(spec.method) for spec, _ in specs}
    if run.deliverable_digest is not None:  # the first thing that these gradings make, if it is not there
        await integrity.request(tx, run.project_id, run.deliverable_digest, queued=False)
    found: list[GradingRow] = []
    for counts in (True, False):
        found += await gradings.enqueue(
            tx,
            run,
            [spec for spec, primary in specs if primary is counts],
            round=round,
            primary=counts,
            versions={method: g.version if g else NO_METHOD_VERSION for method, g in graders.items()},
            queues={method: g.queue for method, g in graders.items() if g},
            occasion=why,
        )
    return found


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

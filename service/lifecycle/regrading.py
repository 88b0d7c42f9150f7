"""Grading anew what was delivered, without running anything anew: one run, or many under one regrade (NEEDS B20)."""

from service.domain.errors import Conflict, NotFound
from service.domain.run_states import Phase
from service.lifecycle.plans import grading_plan
from service.lifecycle.sealing import enqueue, specs_of
from service.store import combining, runs, tasks
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.gradings import Occasion
from service.store.rows import GradingRow


async def regrade(
    tx: Tx,
    project_id: str,
    run_id: str,
    round: int | None = None,
    *,
    plan: str | None = None,
    primary: bool = False,
    occasion: Occasion | None = None,
) -> list[GradingRow]:
    """Queue a new round over the sealed deliverable; ``round`` defaults to the run's next one.

    ``plan`` (default: the run's own) is checked against the task. ``primary``: it becomes the run's own, in the transaction
    that writes its verdict; till then the old verdict stands. Raises NotFound, Conflict ``run_not_sealed`` (still working, or
    nothing was sealed), ``no_graders``, ``round_taken`` (by another plan's grading), Invalid (plan and task do not fit).
    """
    if await runs.get(tx, project_id, run_id) is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    await lock_run(tx, run_id)
    run = await runs.load(tx, run_id)
    if run.phase not in (Phase.GRADING, Phase.DONE) or run.deliverable_digest is None:
        raise Conflict("run_not_sealed", "the run has no sealed deliverable")
    task = await tasks.get(tx, project_id, run.task_id)
    if task is None:
        raise NotFound("task_not_found", f"no task {run.task_id}")
    name = run.plan if plan is None else await grading_plan(tx, project_id, plan, task.manifest)
    if not await specs_of(tx, run, task.manifest, name):
        raise Conflict("no_graders", "the task names no grader")
    why = occasion or Occasion(name)
    rows = await enqueue(
        tx, run, task.manifest, round=round or await combining.last_round(tx, run_id) + 1, occasion=why
    )
    if any(row.plan != name for row in rows):
        raise Conflict("round_taken", "another plan has a grading of this method and these settings in this round")
    if primary:
        await adopt(tx, run_id, name)
    return rows


async def adopt(tx: Tx, run_id: str, plan: str) -> None:
    """Make the plan the run's own as soon as what it says has all ended: now, or with its last grading."""
    run = await lock_run(tx, run_id)
    if run["plan"] != plan:
        await runs.update(tx, run_id, next_plan=plan)
    await combining.combine(tx, await lock_run(tx, run_id), plan)

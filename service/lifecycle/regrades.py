"""Regrades: drawn up with an estimate, started on a sample or on all, carried on by a job until they have ended (NEEDS B20).

Nothing of a run changes while its set is graded. With ``primary`` the plan becomes the runs' own at the end, each together
with its verdict, so that a table never mixes verdicts of two plans for longer than that takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.grading_plans import PlanSpec, specs_for
from service.domain.regrades import ENDED_REGRADES, MOST_RUNS, RegradeRequest, RegradeState, RunChoice, RunStep
from service.domain.strata import spread
from service.domain.tasks import TaskManifest, canonical_digest
from service.domain.verdicts import Verdict, VerdictState
from service.lifecycle.estimates import Estimator, money
from service.lifecycle.plans import check_judges, check_tasks
from service.lifecycle.regrading import adopt, regrade
from service.reporting.comparing import compare
from service.store import clock, grading_plans, gradings, regrade_results, regrades, runs, tasks
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.gradings import Occasion
from service.store.regrades import Candidate
from service.store.rows_grading import RegradeRow
from service.store.run_filters import filter_of

PRIORITY = -1
"""Below gradings of runs that have just ended."""
MOST_FLIPS = 200
"""Ids of runs named on each side of a comparison."""
_BATCH = 25
"""Runs that one transaction looks after."""
Scope = Literal["sample", "all"]


async def draw_up(tx: Tx, blobs: BlobStore, project_id: str, asked: RegradeRequest, author: str) -> RegradeRow:
    """Fix the runs, check plan and tasks, estimate; nothing is graded yet.

    Raises NotFound ``plan_not_found``, ``run_not_found``, Invalid ``no_runs``, ``too_many_runs`` (plan and tasks do not fit:
    see lifecycle.plans), Conflict ``regraded_already``.
    """
    plan, spec = await grading_plans.resolve(tx, project_id, asked.plan)
    said = _said(asked)
    await _refuse_again(tx, project_id, plan, asked.round, said["digest"])
    chosen, left_out = await _chosen(tx, project_id, asked)
    manifests = await tasks.manifests(tx, project_id, dict.fromkeys(one.task_id for one in chosen))
    await _check(tx, project_id, spec, manifests)
    sampled = _sampled(asked, chosen)
    estimator = Estimator(tx, blobs, project_id, spec, manifests)
    estimate = {**await estimator.estimate(chosen), "left_out": left_out}
    if sampled:
        estimate["sample"] = await estimator.estimate([one for one in chosen if one.run_id in sampled])
    values = {"plan": plan, "spec": said, "estimate": estimate, "round": asked.round, "author": author}
    return await regrades.create(tx, project_id, values, chosen, sampled)


async def start(tx: Tx, project_id: str, regrade_id: str, scope: Scope) -> RegradeRow:
    """Let jobs grade the sample, or all of it. What is under way already stays so.

    Raises NotFound, Conflict ``regrade_over``, ``no_sample``, ``regraded_already``.
    """
    row = await _locked(tx, project_id, regrade_id)
    wanted = RegradeState.SAMPLING if scope == "sample" else RegradeState.RUNNING
    if row.state == wanted:
        return row
    if row.state in ENDED_REGRADES:
        raise Conflict("regrade_over", f"the regrade is {row.state}")
    if scope == "sample" and row.spec.get("sample") is None:
        raise Conflict("no_sample", "the regrade was drawn up without a sample")
    if scope == "sample" and row.state != RegradeState.DRAFT:
        return row
    if row.state == RegradeState.DRAFT:
        await _refuse_again(tx, project_id, row.plan, row.round, row.spec["digest"])
    started = row.started_at or await clock.now(tx)
    return await regrades.change(tx, regrade_id, state=wanted, started_at=started)


async def cancel(tx: Tx, project_id: str, regrade_id: str) -> RegradeRow:
    """End it: gradings under way are closed as ``cancelled`` by a job, and no run changes. Raises NotFound, Conflict."""
    row = await _locked(tx, project_id, regrade_id)
    if row.state == RegradeState.DONE:
        raise Conflict("regrade_over", "the regrade is done")
    if row.state == RegradeState.CANCELLED:
        return row
    return await regrades.change(tx, regrade_id, state=RegradeState.CANCELLED, ended_at=await clock.now(tx))


async def carry_on(db: Database, regrade_id: str, patience_s: float = 600.0) -> None:
    """Do what can be done now, in transactions of a few runs each. Raises Unavailable (database away for long)."""
    while await retrying(db, partial(_step, regrade_id=regrade_id), patience_s):
        pass


async def _step(tx: Tx, regrade_id: str) -> bool:
    """Return whether there may be more to do at once."""
    row = await regrades.load(tx, regrade_id, lock=True)
    match row.state if row else None:
        case RegradeState.CANCELLED:
            return await _close(tx, regrade_id)
        case RegradeState.SAMPLING | RegradeState.RUNNING:
            assert row is not None
            return await _go_on(tx, row)
        case _:
            return False


async def _close(tx: Tx, regrade_id: str) -> bool:
    found = await regrades.open_gradings(tx, regrade_id, _BATCH)
    for grading_id in found:
        await gradings.finish(tx, grading_id, Verdict(VerdictState.FAILED, cause="cancelled"))
    return bool(found)


async def _go_on(tx: Tx, row: RegradeRow) -> bool:
    of_sample = row.state == RegradeState.SAMPLING
    waiting = await regrades.in_step(tx, row.id, RunStep.WAITING, _BATCH, sampled_only=of_sample)
    for run_id in waiting:
        await regrades.set_step(tx, row.id, run_id, await _queued(tx, row, run_id))
    if waiting:
        return True
    if await regrades.open_gradings(tx, row.id, 1):
        return False
    if of_sample:
        compared = await comparison(tx, row, sampled_only=True)
        await regrades.change(tx, row.id, state=RegradeState.SAMPLED, comparison=compared)
        return False
    return await _finish(tx, row)


async def _finish(tx: Tx, row: RegradeRow) -> bool:
    graded = await regrades.in_step(tx, row.id, RunStep.QUEUED, _BATCH) if row.spec["primary"] else []
    for run_id in graded:
        await adopt(tx, run_id, row.plan)
        await regrades.set_step(tx, row.id, run_id, RunStep.ADOPTED)
    if graded:
        return True
    compared = await comparison(tx, row, sampled_only=False)
    ended = await clock.now(tx)
    await regrades.change(tx, row.id, state=RegradeState.DONE, comparison=compared, ended_at=ended)
    return False


async def _queued(tx: Tx, row: RegradeRow, run_id: str) -> RunStep:
    try:
        await regrade(tx, row.project_id, run_id, plan=row.plan, occasion=Occasion(row.plan, PRIORITY, row.id))
    except (Conflict, NotFound, Invalid):  # it was checked when the regrade was drawn up; what changed since stays out
        return RunStep.LEFT_OUT
    return RunStep.QUEUED


async def comparison(tx: Tx, row: RegradeRow, *, sampled_only: bool) -> dict[str, Any]:
    """Return how the plan's verdicts so far differ from those that the runs had, and what they cost."""
    rule = (await grading_plans.spec_of(tx, row.project_id, row.plan)).combine
    found = await regrade_results.pairs(tx, row.id, rule, sampled_only=sampled_only)
    seed = row.spec["sample"]["seed"] if row.spec["sample"] else 0
    said = asdict(compare([(p.run_id, p.before, p.after) for p in found], seed))
    for name in ("flips_up", "flips_down"):
        said[name] = {"n": len(said[name]), "run_ids": list(said[name][:MOST_FLIPS])}
    spent = await regrade_results.spending(tx, row.id)
    said["cost"] = {**asdict(spent), "usd": None if spent.usd is None else money(spent.usd)}
    return said


async def _locked(tx: Tx, project_id: str, regrade_id: str) -> RegradeRow:
    row = await regrades.get(tx, project_id, regrade_id, lock=True)
    if row is None:
        raise NotFound("not_found")
    return row


async def _refuse_again(tx: Tx, project_id: str, plan: str, round: int, digest: str) -> None:
    earlier = await regrades.started_like(tx, project_id, plan, round, digest)
    if earlier is not None:
        detail = f"{earlier} is of the same plan, runs and round; ask for another round to grade them anew"
        raise Conflict("regraded_already", detail, regrade_id=earlier)


def _said(asked: RegradeRequest) -> dict[str, Any]:
    # A filter of a later version, left out while it says nothing: the digest stays that of an earlier regrade.
    later = None if asked.filter is None or asked.filter.evaluation_id else {"evaluation_id"}
    chosen = None if asked.filter is None else asked.filter.model_dump(mode="json", exclude=later)
    ids = None if asked.runs is None else sorted(set(asked.runs))
    return {
        "filter": chosen,
        "runs": None if ids is None else len(ids),
        "sample": None if asked.sample is None else asked.sample.model_dump(mode="json"),
        "primary": asked.primary,
        "digest": canonical_digest({"filter": chosen, "runs": ids}),
    }


async def _chosen(tx: Tx, project_id: str, asked: RegradeRequest) -> tuple[list[Candidate], int]:
    """Return the runs, and how many are left out because nothing of them is sealed."""
    where = filter_of(asked.filter or RunChoice())
    if asked.runs is not None:
        where = replace(where, ids=tuple(dict.fromkeys(asked.runs)))
    total = await runs.count(tx, project_id, where)
    if asked.runs is not None and total < len(where.ids):
        raise NotFound("run_not_found", f"{len(where.ids) - total} of these are no runs of the project")
    stratify = asked.sample.stratify if asked.sample else None
    found = await regrades.candidates(tx, project_id, where, stratify, MOST_RUNS + 1)
    if len(found) > MOST_RUNS:
        raise Invalid("too_many_runs", f"a regrade is of at most {MOST_RUNS} runs; choose fewer")
    if not found:
        raise Invalid("no_runs", "none of these runs has a sealed deliverable whose work is over")
    return found, total - len(found)


def _sampled(asked: RegradeRequest, chosen: Sequence[Candidate]) -> frozenset[str]:
    if asked.sample is None:
        return frozenset()
    sample = asked.sample
    drawn = spread(chosen, sample.n, sample.seed, key=lambda c: c.run_id, stratum=lambda c: c.stratum)
    return frozenset(one.run_id for one in drawn)


async def _check(tx: Tx, project_id: str, spec: PlanSpec, manifests: Mapping[str, TaskManifest]) -> None:
    check_tasks(spec, manifests.values())
    merged = (found.settings for task in manifests.values() for found, _ in specs_for(spec, task.graders))
    await check_judges(tx, project_id, merged)

"""Which deliverables a probe is made of, and what is refused before anything is asked."""

from service.domain.errors import Invalid
from service.domain.grading_plans import specs_for
from service.domain.probes import ProbeSpec
from service.domain.regrades import AGENT
from service.domain.strata import spread
from service.domain.tasks import GraderSpec
from service.lifecycle.plans import check_judges
from service.lifecycle.probing.job import ProbeJob, judging_spec
from service.store import grading_plans, regrades, tasks
from service.store.database import Tx
from service.store.rows import RunFilter

MOST_CANDIDATES = 20_000


async def drawn(tx: Tx, project_id: str, wish: ProbeSpec, where: RunFilter) -> ProbeJob:
    """Draw the runs, evenly over agents, by the seed alone; return what the operation is given.

    Raises Invalid ``no_runs`` (none has a sealed deliverable), ``plan_without_judges``, ``unknown_judge``, NotFound
    ``plan_not_found``.
    """
    for reference in filter(None, (wish.plan, wish.compare_with)):
        await grading_plans.resolve(tx, project_id, reference)
    await check_judges(tx, project_id, [{"judges": [wish.judge.model_dump(mode="json")]}])
    found = await regrades.candidates(tx, project_id, where, AGENT, MOST_CANDIDATES)
    plan = await grading_plans.spec_of(tx, project_id, wish.plan)
    known: dict[str, bool] = {}
    for task_id in {c.task_id for c in found}:
        task = await tasks.get(tx, project_id, task_id)
        known[task_id] = task is not None and _has_judges(
            wish, plan_specs=[s for s, _ in specs_for(plan, task.manifest.graders)]
        )
    able = [c for c in found if known[c.task_id]]
    if not able:
        if found:
            raise Invalid("plan_without_judges", f"plan {wish.plan} has no method with judges for these runs' tasks")
        raise Invalid("no_runs", "none of these runs has a sealed deliverable whose work is over")
    chosen = spread(able, wish.n, wish.seed, key=lambda c: c.run_id, stratum=lambda c: c.stratum)
    return ProbeJob(**wish.model_dump(), runs=[c.run_id for c in chosen])


def _has_judges(wish: ProbeSpec, plan_specs: list[GraderSpec]) -> bool:
    try:
        judging_spec(plan_specs, wish)
    except Invalid:
        return False
    return True

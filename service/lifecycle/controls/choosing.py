"""Which runs a request for controls means, and whether what it names is there."""

from service.domain.controls import MOST_RUNS, ControlsRequest, ControlsSpec
from service.domain.errors import Invalid, NotFound
from service.domain.regrades import RunChoice
from service.domain.run_states import NO_WORK
from service.store import agents, grading_plans, runs
from service.store.database import Tx
from service.store.rows import Cursor, RunFilter, RunRow
from service.store.run_filters import filter_of

_PAGE = 500


async def chosen(tx: Tx, project_id: str, request: ControlsRequest) -> ControlsSpec:
    """Fix the runs. Of a filter those are meant that delivered something, controls and preflights left out; named ones are taken as named.

    Raises NotFound ``run_not_found``, ``agent_not_found``, ``plan_not_found``; Invalid ``no_runs``, ``too_many_runs``.
    """
    asked = request.model_dump(exclude={"filter", "runs"})
    if request.weaker is not None:
        agent = await agents.get(tx, project_id, request.weaker)
        if agent is None:
            raise NotFound("agent_not_found", f"no agent {request.weaker}")
        asked["weaker"] = agent.id
    if request.plan is not None:
        asked["plan"] = (await grading_plans.resolve(tx, project_id, request.plan))[0]
    originals = await (_named if request.runs is not None else _matching)(tx, project_id, request)
    if not originals:
        raise Invalid("no_runs", "no run with a deliverable is meant")
    return ControlsSpec(**asked, originals=originals)


async def _named(tx: Tx, project_id: str, request: ControlsRequest) -> list[str]:
    wanted = list(dict.fromkeys(request.runs or ()))
    page = await runs.list(tx, project_id, RunFilter(ids=tuple(wanted)), limit=_PAGE)
    there = {run.id for run in page.items}
    missing = next((run_id for run_id in wanted if run_id not in there), None)
    if missing is not None:
        raise NotFound("run_not_found", f"no run {missing}")
    return wanted


async def _matching(tx: Tx, project_id: str, request: ControlsRequest) -> list[str]:
    where = filter_of(request.filter or RunChoice())
    found: list[str] = []
    cursor: Cursor | None = None
    while True:
        page = await runs.list(tx, project_id, where, "created_at", cursor, _PAGE)
        found += [run.id for run in page.items if _is_meant(run)]
        if len(found) > MOST_RUNS:
            raise Invalid("too_many_runs", f"the filter lets more than {MOST_RUNS} runs through")
        cursor = page.next
        if cursor is None:
            return found


def _is_meant(run: RunRow) -> bool:
    return run.deliverable_digest is not None and run.deliverable_files > 0 and NO_WORK.isdisjoint(run.flags)

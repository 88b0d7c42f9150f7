"""``/v1/grading-plans``: named, versioned choices of methods, judges and votes. A version never changes."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import GradingsRead, GradingsWrite, State
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer
from service.api.resources.leases import Body
from service.domain.errors import NotFound
from service.domain.grading_plans import TASK_PLAN, PlanSpec
from service.domain.tasks import Name, canonical_digest
from service.lifecycle.plans import make_plan
from service.store import audit, grading_plans
from service.store.rows_grading import PlanRow

router = APIRouter(prefix="/v1/grading-plans", tags=["gradings"], route_class=StrictRoute)


class NewPlan(Body):
    name: Name
    spec: PlanSpec


class GradingPlan(View):
    id: str | None
    """Null: built in."""
    name: str
    version: int
    plan: str
    """``name@version``: what runs and gradings name."""
    digest: str
    spec: PlanSpec
    author: str | None
    """Token that made this version."""
    created_at: Timestamp | None


class PlanQuery(ListQuery):
    name: Values = ()
    author: Values = ()


def _view(row: PlanRow) -> GradingPlan:
    return GradingPlan(
        id=row.id,
        name=row.name,
        version=row.version,
        plan=f"{row.name}@{row.version}",
        digest=row.digest,
        spec=row.spec,
        author=row.author,
        created_at=row.created_at,
    )


def _built_in() -> GradingPlan:
    digest = canonical_digest(PlanSpec().model_dump(mode="json"))
    name = grading_plans.BUILT_IN
    return GradingPlan(
        id=None, name=name, version=1, plan=TASK_PLAN, digest=digest, spec=PlanSpec(), author=None, created_at=None
    )


@router.post("", operation_id="create_grading_plan", response_model=GradingPlan, status_code=201)
async def create_grading_plan(body: NewPlan, caller: GradingsWrite, state: State) -> Response:
    """Make the next version of a plan; 200 with the newest one where that says the same already.

    Methods must exist, and judges be models of the catalogue; whether the settings fit a task is checked where the plan is
    chosen for it. ``task`` is the name of the built-in plan: the tasks' own graders.
    """
    async with state.db.transaction() as tx:
        row, new = await make_plan(tx, caller.project_id, body.name, body.spec, caller.token.id)
        if new:
            await audit.record(tx, caller.project_id, caller.token.id, "plan.create", row.id, {"name": row.name})
    return answer(_view(row), 201 if new else 200, {"Location": f"/v1/grading-plans/{row.name}@{row.version}"})


@router.get("", operation_id="list_grading_plans", response_model=ListOf[GradingPlan], responses=UNCHANGED)
async def list_grading_plans(
    request: Request, caller: GradingsRead, state: State, page: Paging, query: Annotated[PlanQuery, Query()]
) -> Response:
    """List all versions of the project's plans; the built-in ``task@1`` is not among them. Sorts: created_at, name."""
    values = {"name": query.name, "author": query.author}
    listed = source(request, grading_plans.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, GradingPlan)
    return await answer_list(request, state, listed, _view, names=names, total=query.total)


@router.get("/{plan:path}", operation_id="get_grading_plan", response_model=GradingPlan)
async def get_grading_plan(plan: str, caller: GradingsRead, state: State) -> Response:
    """Return ``name@version``, or the newest version of ``name``."""
    if plan in (grading_plans.BUILT_IN, TASK_PLAN):
        return answer(_built_in())
    async with state.db.reading() as tx:
        row = await grading_plans.find(tx, caller.project_id, plan)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))

"""``/v1/projects``: whose things are whose, and how much of the hosts each may have at once. For operators."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.operators import Operator
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.errors import NotFound
from service.domain.evaluations import EvaluationBudget
from service.store import audit, projects
from service.store.database import Tx
from service.store.rows import Project as ProjectRow

router = APIRouter(prefix="/v1/projects", tags=["projects"], route_class=StrictRoute)
MaxRuns = Annotated[int | None, Field(ge=0, le=100_000)]


class Project(View):
    id: str
    name: str
    untrusted: bool
    """Runs only where the runtime keeps even hostile work in, under a hard quota."""
    max_runs: int | None
    """Most live runs at once; null = no limit of its own."""
    budget: EvaluationBudget | None
    """Of all its runs together."""
    spend: dict[str, Any]
    """``agents_usd``, ``judges_usd`` as of the last look; empty without a budget."""
    created_at: Timestamp


class NewProject(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    untrusted: bool = False
    max_runs: MaxRuns = None


class ProjectChange(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    untrusted: bool = False
    max_runs: MaxRuns = None
    """Null takes the limit away; 0 lets nothing start. Runs that are live go on."""
    budget: EvaluationBudget | None = None
    """As that of an evaluation, of all runs of the project; null takes it away."""


def _view(row: ProjectRow) -> Project:
    spend = {name: row.spend[name] for name in ("agents_usd", "judges_usd") if name in row.spend}
    return Project(
        id=row.id, name=row.name, untrusted=row.untrusted, max_runs=row.max_runs, budget=row.budget,
        spend={} if row.budget is None else spend, created_at=row.created_at,
    )  # fmt: skip


@router.post("", operation_id="create_project", response_model=Project, status_code=201)
async def create_project(body: NewProject, request: Request, caller: Operator, state: State) -> Response:
    """Make a project. Its first token is minted on the server: ``workstead token``. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        row = await projects.create(tx, body.name, untrusted=body.untrusted, max_runs=body.max_runs)
        await audit.record(tx, caller.project_id, caller.token.id, "project.create", row.id, body.model_dump())
        return Made(_view(row), 201, f"/v1/projects/{row.id}")

    return await once(request, state, caller, "POST /v1/projects", work)


@router.get("", operation_id="list_projects", response_model=ListOf[Project])
async def list_projects(request: Request, _caller: Operator, state: State, page: Paging) -> Response:
    """List projects, newest first."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        found = await projects.list(tx, page)
    return answer(ListOf[Project](data=[_view(r) for r in found.items], next=next_link(request, found.next)))


@router.get("/{project_id}", operation_id="get_project", response_model=Project)
async def get_project(project_id: str, _caller: Operator, state: State) -> Response:
    async with state.db.reading() as tx:
        return answer(_view(_found(await projects.get(tx, project_id))))


@router.patch("/{project_id}", operation_id="change_project", response_model=Project)
async def change_project(project_id: str, body: ProjectChange, caller: Operator, state: State) -> Response:
    """Change how much a project may have at once and may spend, and whether it is trusted. Claims heed it at once."""
    columns: dict[str, Any] = body.model_dump(mode="json", exclude_unset=True)
    async with state.db.transaction() as tx:
        row = _found(await projects.get(tx, project_id))
        if columns:
            row = _found(await projects.change(tx, project_id, **columns))
            await audit.record(tx, caller.project_id, caller.token.id, "project.change", project_id, columns)
    return answer(_view(row))


def _found(row: ProjectRow | None) -> ProjectRow:
    if row is None:
        raise NotFound("not_found")
    return row

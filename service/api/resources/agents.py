"""``/v1/agents``: what is measured (scaffold@version, model, settings), immutable, with a short unique label."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import AgentsRead, AgentsWrite, State
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.domain.agents import AgentSpec
from service.domain.errors import NotFound
from service.lifecycle import scaffold_choice
from service.lifecycle.choosing import check_agent
from service.store import agents
from service.store.rows import AgentRow

router = APIRouter(prefix="/v1/agents", tags=["agents"], route_class=StrictRoute)


class Agent(View):
    id: str
    label: str
    digest: Digest
    scaffold: str
    """``name@version``"""
    scaffold_id: str
    model: str | None
    settings: dict[str, Any]
    created_at: Timestamp


class AgentQuery(ListQuery):
    label: Values = ()
    scaffold: Values = ()
    scaffold_id: Values = ()
    model: Values = ()


def _view(row: AgentRow) -> Agent:
    return Agent(
        id=row.id,
        label=row.label,
        digest=sha256_name(row.digest),
        scaffold=row.spec.scaffold,
        scaffold_id=row.scaffold_id,
        model=row.spec.model,
        settings=row.spec.settings,
        created_at=row.created_at,
    )


@router.post("", operation_id="create_agent", response_model=Agent, status_code=201)
async def create_agent(body: AgentSpec, caller: AgentsWrite, state: State) -> Response:
    """Create an agent. The same scaffold, model and settings again answer 200 with the agent that exists.

    ``scaffold`` may name one that comes with the service, and ``latest`` as its version: the agent names what that is.
    """
    async with state.db.transaction() as tx:
        spec = await scaffold_choice.choose(tx, caller.project_id, body)
        await check_agent(tx, caller.project_id, spec)
        row, created = await agents.create(tx, caller.project_id, spec)
    return answer(_view(row), 201 if created else 200, {"Location": f"/v1/agents/{row.id}"})


@router.get("", operation_id="list_agents", response_model=ListOf[Agent], responses=UNCHANGED)
async def list_agents(
    request: Request, caller: AgentsRead, state: State, page: Paging, query: Annotated[AgentQuery, Query()]
) -> Response:
    """List agents. Sorts: created_at, label."""
    listed = source(
        request,
        agents.LISTING,
        caller.project_id,
        query,
        page,
        label=query.label,
        scaffold=query.scaffold,
        scaffold_id=query.scaffold_id,
        model=query.model,
    )
    names = chosen(query.fields, Agent)
    return await answer_list(request, state, listed, _view, names=names, total=query.total)


@router.get("/{agent_id}", operation_id="get_agent", response_model=Agent)
async def get_agent(agent_id: str, caller: AgentsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        row = await agents.get(tx, caller.project_id, agent_id)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))

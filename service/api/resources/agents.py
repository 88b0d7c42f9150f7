"""``/v1/agents``: what is measured (scaffold@version, model, settings), immutable, with a short unique label."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import AgentsRead, AgentsWrite, State
from service.api.json_body import StrictRoute
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.domain.agents import AgentSpec
from service.domain.errors import NotFound
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
    """Create an agent. The same scaffold, model and settings again answer 200 with the agent that exists."""
    async with state.db.transaction() as tx:
        row, created = await agents.create(tx, caller.project_id, body)
    return answer(_view(row), 201 if created else 200, {"Location": f"/v1/agents/{row.id}"})


@router.get("", operation_id="list_agents", response_model=ListOf[Agent])
async def list_agents(request: Request, caller: AgentsRead, state: State, page: Paging) -> Response:
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        found = await agents.list(tx, caller.project_id, page)
    return answer(ListOf[Agent](data=[_view(r) for r in found.items], next=next_link(request, found.next)))


@router.get("/{agent_id}", operation_id="get_agent", response_model=Agent)
async def get_agent(agent_id: str, caller: AgentsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        row = await agents.get(tx, caller.project_id, agent_id)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))

"""``/v1/breakers``: which ways to models are shut, since when, why; and the hand that shuts and opens them (B12)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import AgentsRead, ModelsAdmin, State
from service.api.json_body import StrictRoute
from service.api.pagination import ListOf
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.breakers import BreakerState
from service.domain.errors import NotFound
from service.store import audit, breakers, models
from service.store.breakers import Way
from service.store.rows_models import BreakerRow, ModelRow

router = APIRouter(prefix="/v1/breakers", tags=["models"], route_class=StrictRoute)


class Breaker(View):
    """The way to a model with its present credential. While it is not closed, runs that need it are held."""

    model_id: str
    model: str
    provider: str
    state: str
    """closed | open | half_open (one probe is under way)"""
    manual: bool
    """Opened by hand: no probe closes it."""
    reason: str | None
    failures: int
    """In a row, the one that opened it and each failed probe."""
    concurrency: int | None
    """Present limit of requests at once, where the provider made us find one."""
    opened_at: Timestamp | None
    next_probe_at: Timestamp | None
    updated_at: Timestamp | None
    """Null: nothing ever happened."""


class BreakerChange(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    state: Literal["open", "closed"]
    """``open``: nothing passes until somebody closes it. ``closed``: it goes on by itself."""
    reason: Annotated[str, Field(max_length=200)] = ""
    """For those who wait."""


def _view(model: ModelRow, row: BreakerRow | None) -> Breaker:
    same = {name: getattr(row, name, None) for name in ("reason", "concurrency", "opened_at", "next_probe_at")}
    return Breaker(
        model_id=model.id,
        model=model.name,
        provider=model.spec.provider,
        state=BreakerState.CLOSED if row is None else row.state,
        manual=row is not None and row.manual,
        failures=0 if row is None else row.failures,
        updated_at=None if row is None else row.updated_at,
        **same,
    )


def _way(model: ModelRow) -> Way:
    return Way(model.spec.provider, model.id, model.credential_id or "", model.project_id)


@router.get("", operation_id="list_breakers", response_model=ListOf[Breaker])
async def list_breakers(request: Request, caller: AgentsRead, state: State) -> Response:
    """List the breakers of the project's models that ever did something, at most 1 000."""
    only_known(request, (), ())
    async with state.db.reading() as tx:
        pairs = await breakers.with_models(tx, caller.project_id)
    return answer(ListOf[Breaker](data=[_view(model, row) for model, row in pairs], next=None))


@router.get("/{model_id}", operation_id="get_breaker", response_model=Breaker)
async def get_breaker(model_id: str, caller: AgentsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        model = await models.get(tx, caller.project_id, model_id)
        if model is None:
            raise NotFound("not_found")
        return answer(_view(model, await breakers.get(tx, _way(model))))


@router.put("/{model_id}", operation_id="set_breaker", response_model=Breaker)
async def set_breaker(model_id: str, body: BreakerChange, caller: ModelsAdmin, state: State) -> Response:
    """Shut the way to a model, or open it again. Runs that are at work wait at the gateway, others are held."""
    async with state.db.transaction() as tx:
        model = await models.get(tx, caller.project_id, model_id)
        if model is None:
            raise NotFound("not_found")
        row = await breakers.set_by_hand(tx, _way(model), BreakerState(body.state), body.reason)
        detail = {"state": body.state, "reason": body.reason}
        await audit.record(tx, caller.project_id, caller.token.id, "breaker.set", model_id, detail)
    return answer(_view(model, row))

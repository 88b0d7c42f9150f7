"""``/v1/models``: the project's model catalogue; its credentials go in and never come out (NEEDS A5, A12, C4)."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import AgentsRead, ModelsAdmin, State
from service.api.credential_view import CredentialState, NewCredential
from service.api.entries import Resource
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.operation_view import Operation, operation_view
from service.api.pagination import ListOf, Paging
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.credentials import Purpose
from service.domain.errors import Invalid
from service.domain.models import ModelSpec
from service.models.catalogue import shipped
from service.store import models, operations
from service.store.rows_models import ModelRow

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=StrictRoute)
shipped_router = APIRouter(prefix="/v1/model-catalogue", tags=["models"], route_class=StrictRoute)
CHECK = "model_check"


class Model(View):
    id: str
    revision: int
    name: str
    spec: ModelSpec
    has_credential: bool
    private: bool
    """Brought by an operator: its address may be a private one."""
    checked_at: Timestamp | None
    check: dict[str, Any] | None
    """What the last check of this very entry found; null: none, or the entry was replaced since."""
    created_at: Timestamp


class ModelQuery(ListQuery):
    name: Values = ()
    provider: Values = ()
    dialect: Values = ()
    vendor: Values = ()
    family: Values = ()


def _view(row: ModelRow) -> Model:
    return Model(
        id=row.id,
        revision=row.revision,
        name=row.name,
        spec=row.spec,
        has_credential=row.credential_id is not None,
        private=row.private,
        checked_at=row.checked_at,
        check=row.check_result,
        created_at=row.created_at,
    )


_MODELS = Resource[ModelSpec, ModelRow]("model", _view, models.create, models.get, models.replace, models.delete)


@router.post("", operation_id="create_model", response_model=Model, status_code=201)
async def create_model(body: ModelSpec, caller: ModelsAdmin, state: State) -> Response:
    """Add a model. The same entry again answers 200; another one under the same name, 409."""
    return await _MODELS.create(state, caller, body)


@router.get("", operation_id="list_models", response_model=ListOf[Model], responses=UNCHANGED)
async def list_models(
    request: Request, caller: AgentsRead, state: State, page: Paging, query: Annotated[ModelQuery, Query()]
) -> Response:
    """List the project's models. Sorts: created_at, name."""
    names = ("name", "provider", "dialect", "vendor", "family")
    filters = {name: getattr(query, name) for name in names}
    listed = source(request, models.LISTING, caller.project_id, query, page, **filters)
    return await answer_list(
        request, state, listed, _view, names=chosen(query.fields, Model), total=query.total
    )  # fmt: skip


@router.get("/{model_id}", operation_id="get_model", response_model=Model, responses=UNCHANGED)
async def get_model(model_id: str, request: Request, caller: AgentsRead, state: State) -> Response:
    """Return a model; the ETag is its revision."""
    return await _MODELS.get(state, caller, model_id, request)


@router.put("/{model_id}", operation_id="replace_model", response_model=Model)
async def replace_model(model_id: str, body: ModelSpec, caller: ModelsAdmin, state: State) -> Response:
    """Replace all of an entry but its name. With another ``base_url`` its credential is forgotten."""
    return await _MODELS.replace(state, caller, model_id, body)


@router.delete("/{model_id}", operation_id="delete_model", status_code=204)
async def delete_model(model_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Delete a model that no agent names and no run had, with its credential."""
    return await _MODELS.delete(state, caller, model_id)


@router.put("/{model_id}/credential", operation_id="put_model_credential", response_model=CredentialState)
async def put_model_credential(model_id: str, body: NewCredential, caller: ModelsAdmin, state: State) -> Response:
    """Bring or replace the model's key. It is sealed for the gateway, and no answer ever holds it."""
    if body.purpose is Purpose.SERVICE:
        raise Invalid("bad_purpose", "a model's credential is for models or judges")
    return await _MODELS.put_credential(state, caller, model_id, body)


@router.get("/{model_id}/credential", operation_id="get_model_credential", response_model=CredentialState)
async def get_model_credential(model_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Say that there is a key, what for, and whether the gateway can read it; 404 where there is none."""
    return await _MODELS.credential(state, caller, model_id)


@router.delete("/{model_id}/credential", operation_id="remove_model_credential", status_code=204)
async def remove_model_credential(model_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Forget the model's key, within seconds also for runs that are at work."""
    return await _MODELS.remove_credential(state, caller, model_id)


@router.post("/{model_id}/check", operation_id="check_model", response_model=Operation, status_code=202)
async def check_model(model_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Ask the model: a stream, a tool, an image, each effort, its usage. The operation's result says which worked."""
    async with state.db.transaction() as tx:
        row = await _MODELS.load(tx, caller, model_id)
        spec = {"model_id": row.id, "revision": row.revision}
        queued = await operations.create(tx, caller.project_id, CHECK, spec, unit="checks")
    return answer(operation_view(queued), 202, {"Location": f"/v1/operations/{queued.id}"})


@shipped_router.get("", operation_id="list_shipped_models", response_model=ListOf[ModelSpec])
async def list_shipped_models(request: Request, caller: AgentsRead) -> Response:
    """List the public models that this version knows: bodies for ``POST /v1/models``."""
    del caller
    only_known(request, (), ())
    return answer(ListOf[ModelSpec](data=[*shipped().values()], next=None))

"""``/v1/services``: further upstreams of the gateway, whose keys stay outside of sandboxes (NEEDS C5)."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import AgentsRead, ModelsAdmin, State
from service.api.credential_view import CredentialState, NewCredential
from service.api.entries import Resource
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View
from service.domain.credentials import Purpose
from service.domain.errors import Invalid
from service.domain.services import ServiceSpec
from service.store import services
from service.store.rows_models import ServiceRow

router = APIRouter(prefix="/v1/services", tags=["models"], route_class=StrictRoute)


class Service(View):
    id: str
    revision: int
    name: str
    spec: ServiceSpec
    has_credential: bool
    private: bool
    """Brought by an operator: its address may be a private one."""
    created_at: Timestamp


class ServiceQuery(ListQuery):
    name: Values = ()


def _view(row: ServiceRow) -> Service:
    return Service(
        id=row.id,
        revision=row.revision,
        name=row.name,
        spec=row.spec,
        has_credential=row.credential_id is not None,
        private=row.private,
        created_at=row.created_at,
    )


_SERVICES = Resource[ServiceSpec, ServiceRow](
    "service", _view, services.create, services.get, services.replace, services.delete
)


@router.post("", operation_id="create_service", response_model=Service, status_code=201)
async def create_service(body: ServiceSpec, caller: ModelsAdmin, state: State) -> Response:
    """Add a service. The same one again answers 200; another one under the same name, 409."""
    _check(body)
    return await _SERVICES.create(state, caller, body)


@router.get("", operation_id="list_services", response_model=ListOf[Service], responses=UNCHANGED)
async def list_services(
    request: Request, caller: AgentsRead, state: State, page: Paging, query: Annotated[ServiceQuery, Query()]
) -> Response:
    """List the project's services. Sorts: created_at, name."""
    listed = source(request, services.LISTING, caller.project_id, query, page, name=query.name)
    return await answer_list(
        request, state, listed, _view, names=chosen(query.fields, Service), total=query.total
    )  # fmt: skip


@router.get("/{service_id}", operation_id="get_service", response_model=Service, responses=UNCHANGED)
async def get_service(service_id: str, request: Request, caller: AgentsRead, state: State) -> Response:
    """Return a service; the ETag is its revision."""
    return await _SERVICES.get(state, caller, service_id, request)


@router.put("/{service_id}", operation_id="replace_service", response_model=Service)
async def replace_service(service_id: str, body: ServiceSpec, caller: ModelsAdmin, state: State) -> Response:
    """Replace all of a service but its name. With another ``base_url`` its credential is forgotten."""
    _check(body)
    return await _SERVICES.replace(state, caller, service_id, body)


@router.delete("/{service_id}", operation_id="delete_service", status_code=204)
async def delete_service(service_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Delete a service with its credential; agents that name it go without."""
    return await _SERVICES.delete(state, caller, service_id)


@router.put("/{service_id}/credential", operation_id="put_service_credential", response_model=CredentialState)
async def put_service_credential(service_id: str, body: NewCredential, caller: ModelsAdmin, state: State) -> Response:
    """Bring or replace the service's key; ``purpose`` is ``service``. No answer ever holds it."""
    if "purpose" in body.model_fields_set and body.purpose is not Purpose.SERVICE:
        raise Invalid("bad_purpose", "a service's credential is for services")
    own = body.model_copy(update={"purpose": Purpose.SERVICE})
    return await _SERVICES.put_credential(state, caller, service_id, own)


@router.get("/{service_id}/credential", operation_id="get_service_credential", response_model=CredentialState)
async def get_service_credential(service_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Say that there is a key and whether the gateway can read it; 404 where there is none."""
    return await _SERVICES.credential(state, caller, service_id)


@router.delete("/{service_id}/credential", operation_id="remove_service_credential", status_code=204)
async def remove_service_credential(service_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Forget the service's key, within seconds also for runs that are at work."""
    return await _SERVICES.remove_credential(state, caller, service_id)


def _check(spec: ServiceSpec) -> None:
    if spec.credential.place in ("header", "query") and spec.credential.name is None:
        raise Invalid("bad_credential_place", f"which {spec.credential.place} is it? name it")

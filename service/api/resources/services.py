"""``/v1/services``: further upstreams of the gateway, whose keys stay outside of sandboxes (NEEDS C5)."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import AgentsRead, Caller, ModelsAdmin, State
from service.api.conditional import none_match, revision_tag
from service.api.credential_view import (
    CredentialState,
    NewCredential,
    put_credential,
    read_credential,
    remove_credential,
)
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer
from service.api.upstreams import check_upstream, may_be_private
from service.domain.credentials import Purpose
from service.domain.errors import Invalid, NotFound
from service.domain.services import ServiceSpec
from service.store import audit, services
from service.store.database import Tx
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


def _answer(row: ServiceRow, status: int = 200) -> Response:
    return answer(_view(row), status, {"ETag": revision_tag(row.revision), "Location": f"/v1/services/{row.id}"})


@router.post("", operation_id="create_service", response_model=Service, status_code=201)
async def create_service(body: ServiceSpec, caller: ModelsAdmin, state: State) -> Response:
    """Add a service. The same one again answers 200; another one under the same name, 409."""
    private = await may_be_private(state, caller)
    _check(body, private=private)
    async with state.db.transaction() as tx:
        row, created = await services.create(tx, caller.project_id, body, private=private)
        if created:
            await _record(tx, caller, "service.create", row.id, {"name": row.name, "base_url": body.base_url})
    return _answer(row, 201 if created else 200)


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
    async with state.db.reading() as tx:
        row = await _load(tx, caller, service_id)
    tag = revision_tag(row.revision)
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return _answer(row)


@router.put("/{service_id}", operation_id="replace_service", response_model=Service)
async def replace_service(service_id: str, body: ServiceSpec, caller: ModelsAdmin, state: State) -> Response:
    """Replace all of a service but its name. With another ``base_url`` its credential is forgotten."""
    private = await may_be_private(state, caller)
    _check(body, private=private)
    async with state.db.transaction() as tx:
        row = await services.replace(tx, caller.project_id, service_id, body, private=private)
        if row is None:
            raise NotFound("not_found")
        await _record(tx, caller, "service.replace", row.id, {"name": row.name, "base_url": body.base_url})
    return _answer(row)


@router.delete("/{service_id}", operation_id="delete_service", status_code=204)
async def delete_service(service_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Delete a service with its credential; agents that name it go without."""
    async with state.db.transaction() as tx:
        if not await services.delete(tx, caller.project_id, service_id):
            raise NotFound("not_found")
        await _record(tx, caller, "service.delete", service_id, {})
    return Response(status_code=204)


@router.put("/{service_id}/credential", operation_id="put_service_credential", response_model=CredentialState)
async def put_service_credential(service_id: str, body: NewCredential, caller: ModelsAdmin, state: State) -> Response:
    """Bring or replace the service's key; ``purpose`` is ``service``. No answer ever holds it."""
    if "purpose" in body.model_fields_set and body.purpose is not Purpose.SERVICE:
        raise Invalid("bad_purpose", "a service's credential is for services")
    own = body.model_copy(update={"purpose": Purpose.SERVICE})
    async with state.db.transaction() as tx:
        return answer(await put_credential(tx, caller, "service", service_id, own))


@router.get("/{service_id}/credential", operation_id="get_service_credential", response_model=CredentialState)
async def get_service_credential(service_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Say that there is a key and whether the gateway can read it; 404 where there is none."""
    async with state.db.reading() as tx:
        row = await _load(tx, caller, service_id)
        return answer(await read_credential(tx, caller, row.credential_id))


@router.delete("/{service_id}/credential", operation_id="remove_service_credential", status_code=204)
async def remove_service_credential(service_id: str, caller: ModelsAdmin, state: State) -> Response:
    """Forget the service's key, within seconds also for runs that are at work."""
    async with state.db.transaction() as tx:
        await remove_credential(tx, caller, "service", service_id)
    return Response(status_code=204)


def _check(spec: ServiceSpec, *, private: bool) -> None:
    check_upstream(spec.base_url, spec.headers, private=private)
    if spec.credential.place in ("header", "query") and spec.credential.name is None:
        raise Invalid("bad_credential_place", f"which {spec.credential.place} is it? name it")


async def _load(tx: Tx, caller: Caller, service_id: str) -> ServiceRow:
    row = await services.get(tx, caller.project_id, service_id)
    if row is None:
        raise NotFound("not_found")
    return row


async def _record(tx: Tx, caller: Caller, action: str, service_id: str, detail: dict[str, Any]) -> None:
    await audit.record(tx, caller.project_id, caller.token.id, action, service_id, detail)

"""``/v1/scaffolds``: programs that work, registered as data, immutable by ``name@version``."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import AgentsRead, AgentsWrite, State
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.domain.agents import ScaffoldManifest
from service.domain.errors import NotFound
from service.scaffolds import registry
from service.store import scaffolds
from service.store.rows import ScaffoldRow

router = APIRouter(prefix="/v1/scaffolds", tags=["agents"], route_class=StrictRoute)


class Scaffold(View):
    id: str
    name: str
    version: str
    digest: Digest
    created_at: Timestamp
    conformance: dict[str, Any] | None
    """Badge: passed, failed, skipped (cases by their newest results), at; null: never tried out."""
    manifest: ScaffoldManifest


class ScaffoldQuery(ListQuery):
    name: Values = ()
    version: Values = ()
    kind: Values = ()


def _view(row: ScaffoldRow) -> Scaffold:
    return Scaffold(
        id=row.id,
        name=row.name,
        version=row.version,
        digest=sha256_name(row.digest),
        created_at=row.created_at,
        conformance=row.conformance,
        manifest=row.manifest,
    )


@router.post("", operation_id="register_scaffold", response_model=Scaffold, status_code=201)
async def register_scaffold(body: ScaffoldManifest, caller: AgentsWrite, state: State) -> Response:
    """Register a scaffold. The same manifest again answers 200; another one under the same name and version, 409."""
    registry.check(body)
    async with state.db.transaction() as tx:
        row, created = await scaffolds.register(tx, caller.project_id, body)
    return answer(_view(row), 201 if created else 200, {"Location": f"/v1/scaffolds/{row.id}"})


@router.get("", operation_id="list_scaffolds", response_model=ListOf[Scaffold], responses=UNCHANGED)
async def list_scaffolds(
    request: Request, caller: AgentsRead, state: State, page: Paging, query: Annotated[ScaffoldQuery, Query()]
) -> Response:
    """List scaffolds. Sorts: created_at, name."""
    listed = source(
        request,
        scaffolds.LISTING,
        caller.project_id,
        query,
        page,
        name=query.name,
        version=query.version,
        kind=query.kind,
    )
    names = chosen(query.fields, Scaffold)
    return await answer_list(request, state, listed, _view, names=names, total=query.total)


@router.get("/{scaffold_id:path}", operation_id="get_scaffold", response_model=Scaffold)
async def get_scaffold(scaffold_id: str, caller: AgentsRead, state: State) -> Response:
    """Return a scaffold by its id or its ``name@version``."""
    async with state.db.reading() as tx:
        if "@" in scaffold_id:
            row = await scaffolds.find(tx, caller.project_id, scaffold_id)
        else:
            row = await scaffolds.get(tx, caller.project_id, scaffold_id)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))

"""``/v1/scaffold-catalogue``: the scaffolds that come with the service, whether a project has used them or not."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import AgentsRead
from service.api.json_body import StrictRoute
from service.api.pagination import ListOf
from service.api.prefixed import only_known
from service.api.rendering import answer
from service.domain.agents import ScaffoldManifest
from service.scaffolds.shipped import SHIPPED

router = APIRouter(prefix="/v1/scaffold-catalogue", tags=["agents"], route_class=StrictRoute)


@router.get("", operation_id="list_shipped_scaffolds", response_model=ListOf[ScaffoldManifest])
async def list_shipped_scaffolds(request: Request, caller: AgentsRead) -> Response:
    """List the scaffolds that agents may name without registering them."""
    del caller
    only_known(request, (), ())
    return answer(ListOf[ScaffoldManifest](data=list(SHIPPED), next=None))

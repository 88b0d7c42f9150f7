"""``/v1/me``: what the caller's token is and may do. The only route that a run's token opens."""

from fastapi import APIRouter
from starlette.responses import Response

from service.api.auth import AnyCaller
from service.api.json_body import StrictRoute
from service.api.rendering import Timestamp, View, answer

router = APIRouter(prefix="/v1", tags=["tokens"], route_class=StrictRoute)


class Me(View):
    project_id: str
    token_id: str
    kind: str
    """api | run"""
    scopes: list[str]
    note: str
    run_id: str | None
    attempt: int | None
    expires_at: Timestamp | None


@router.get("/me", operation_id="get_me", response_model=Me)
async def get_me(caller: AnyCaller) -> Response:
    """Return the caller's token, without its secret."""
    token = caller.token
    me = Me(
        project_id=token.project_id,
        token_id=token.id,
        kind=token.kind,
        scopes=list(token.scopes),
        note=token.note,
        run_id=token.run_id,
        attempt=token.attempt,
        expires_at=token.expires_at,
    )
    return answer(me)

"""The screen of a run (NEEDS C9): what its remote driver does on it, how it looks, and the pictures of its record."""

import base64
import hashlib
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from service.api.auth import Caller, RunsDrive, RunsRead, State, TokenCaller
from service.api.conditional import none_match
from service.api.desktop_answer import performed_of, seen_of
from service.api.desktop_view import DesktopActed, DesktopRequest
from service.api.downloads import download_headers, file_answer
from service.api.drive_desktop import LOOK, act
from service.api.driving import Driven
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import answer
from service.api.resources.leases import Secret
from service.api.screens import look
from service.api.state import ApiState
from service.domain.desktop import Shot
from service.domain.errors import NotFound
from service.store import blob_refs

router = APIRouter(prefix="/v1/runs", tags=["driving"], route_class=StrictRoute)
_PICTURE: dict[str, Any] = {
    f"image/{name}": {"schema": {"type": "string", "format": "binary"}} for name in ("png", "webp", "jpeg")
}
_TYPES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"RIFF", "webp"), (b"\xff\xd8\xff", "jpeg"))
"""What the pictures of a record begin with: only such are put into it."""
Sha = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
Format = Literal["png", "webp", "jpeg"]


@router.post("/{run_id}/desktop/actions", operation_id="act_on_desktop", response_model=DesktopActed)
async def act_on_desktop(
    run_id: str, body: DesktopRequest, caller: RunsDrive, state: State, secret: Secret
) -> Response:
    """Do a batch on the run's screen, record it with its pictures, and return how the screen is afterwards.

    An action that fails ends the batch and is a result (200). 409 ``no_screen``, ``desktop_lost``; 422 ``unknown_action``,
    ``bad_action``, ``unknown_vocabulary``: nothing was done; 429 ``busy``: others wait already, nothing was done.
    """
    return answer(await act(Driven(state, caller, run_id, secret), body))


@router.get(
    "/{run_id}/desktop/screenshot",
    operation_id="see_desktop",
    response_class=Response,
    responses={200: {"content": _PICTURE}},
)
async def see_desktop(
    run_id: str,
    request: Request,
    caller: TokenCaller,
    state: State,
    secret: Secret,
    format: Annotated[Format, Query()] = "png",
    quality: Annotated[int, Query(ge=1, le=100)] = 75,
    cursor: Annotated[bool, Query()] = True,
) -> Response:
    """Return the screen as it is; its ETag is the picture's sha256.

    Needs ``runs:read``, and leaves no trace then. With ``runs:drive`` and the lease it is what the driver saw, and recorded.
    429 ``busy``: somebody else looks just now.
    """
    shot = Shot(format=format, quality=quality, cursor=cursor)
    data = await _seen(state, caller, run_id, secret, shot)
    tag = f'"{hashlib.sha256(data).hexdigest()}"'
    headers = {**download_headers(f"{run_id}.{format}", tag), "Cache-Control": "private, no-cache"}
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": headers["Cache-Control"]})
    return Response(data, headers=headers, media_type=f"image/{format}")


@router.get(
    "/{run_id}/desktop/pictures/{sha256}",
    operation_id="get_desktop_picture",
    response_class=Response,
    responses={200: {"content": _PICTURE}},
)
async def get_desktop_picture(run_id: str, sha256: Sha, request: Request, caller: RunsRead, state: State) -> Response:
    """Download a picture that an event ``desktop.action`` of the run names. It never changes."""
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        size = await blob_refs.owned_size(tx, blob_refs.PICTURE, run_id, sha256)
    if size is None:
        raise NotFound("not_found")
    file = state.blobs.open(sha256)
    begins = file.read(8)
    file.seek(0)
    format = next((name for signature, name in _TYPES if begins.startswith(signature)), "png")
    headers = download_headers(f"{sha256[:16]}.{format}", f'"{sha256}"')
    headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return file_answer(request, file, size, f"image/{format}", headers)


async def _seen(state: ApiState, caller: Caller, run_id: str, secret: str, shot: Shot) -> bytes:
    if not secret:
        caller.require("runs:read")
        return seen_of(performed_of(await look(state, caller, run_id, shot)))
    caller.require("runs:drive")
    acted = await act(Driven(state, caller, run_id, secret), DesktopRequest(settle=None, screenshot=shot), LOOK)
    return base64.b64decode((acted.screenshot and acted.screenshot.data_base64) or "")

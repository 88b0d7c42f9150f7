"""``/v1/runs/{id}/film``: the pictures of a run's record as a film."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, RunsRead, RunsWrite, State
from service.api.downloads import download_headers, file_answer
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.operation_view import Operation, operation_view
from service.domain.errors import Conflict, NotFound
from service.domain.operations import OperationState
from service.domain.run_states import Phase
from service.lifecycle.operations.film import KIND, FilmSpec
from service.store import blob_refs, operations
from service.store.database import Tx
from service.store.rows import OperationRow

router = APIRouter(prefix="/v1/runs", tags=["artifacts"], route_class=StrictRoute)
_FILM: dict[str, Any] = {"video/mp4": {"schema": {"type": "string", "format": "binary"}}}
_OVER = frozenset({Phase.GRADING, Phase.DONE})


class FilmRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    fps: int = Field(default=2, ge=1, le=10)
    """Stills a second; there is one for each batch of actions."""
    captions: bool = True
    """A strip below says what was done, and when."""


@router.post("/{run_id}/film", operation_id="make_film", response_model=Operation, status_code=202)
async def make_film(run_id: str, body: FilmRequest, request: Request, caller: RunsWrite, state: State) -> Response:
    """Have a film made of the pictures in an ended run's record, at most 5 000 of them; answers with the operation.

    Asked again for the same film, it answers with the operation that makes or has made it; another one takes its place.
    409 ``run_not_ended``, ``no_pictures``.
    """

    async def work(tx: Tx) -> Made:
        run = await run_or_404(tx, caller, run_id)
        if run.phase not in _OVER:
            raise Conflict("run_not_ended", "the record still grows: a film is made when the run's work has ended")
        if await blob_refs.one_owned(tx, blob_refs.PICTURE, run_id) is None:
            raise Conflict("no_pictures", "the run's record has no pictures")
        row = await _find_or_queue(tx, caller, FilmSpec(run_id=run_id, fps=body.fps, captions=body.captions))
        return Made(operation_view(row), 202, f"/v1/operations/{row.id}")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/film", work)


@router.get("/{run_id}/film", operation_id="get_film", response_class=Response, responses={200: {"content": _FILM}})
async def get_film(run_id: str, request: Request, caller: RunsRead, state: State) -> Response:
    """Download the film that was made last (H.264 in mp4; ranges work); its ETag is its sha256. 404 ``film_missing``."""
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        found = await blob_refs.one_owned(tx, blob_refs.FILM, run_id)
    if found is None:
        raise NotFound("film_missing", "nothing has been made yet: POST to this address makes it")
    sha256, size = found
    headers = download_headers(f"{run_id}.mp4", f'"{sha256}"')
    return file_answer(request, state.blobs.open(sha256), size, "video/mp4", headers)


async def _find_or_queue(tx: Tx, caller: Caller, spec: FilmSpec) -> OperationRow:
    wanted = spec.model_dump(mode="json")
    found = await operations.find_open_or_done(tx, caller.project_id, KIND, wanted)
    if found is not None and (found.state is not OperationState.SUCCEEDED or await _is_kept(tx, found)):
        return found
    return await operations.create(tx, caller.project_id, KIND, wanted, unit="stills")


async def _is_kept(tx: Tx, made: OperationRow) -> bool:
    """Tell whether its film is the run's still: one with other captions may have taken its place."""
    result = made.result or {}
    return await blob_refs.owned_size(tx, blob_refs.FILM, result["run_id"], result["sha256"]) is not None

"""``/v1/blobs/{sha256}``: only missing bytes travel, and an upload that broke off goes on from where it was.

The names follow the IETF draft on resumable uploads: ``Upload-Offset`` (bytes that are there), ``Upload-Complete``.
A digest that only other projects have is unknown here: whoever wants it uploads the bytes.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from service.api.auth import Caller, State, TokenCaller
from service.api.blob_batch import unpacked
from service.api.downloads import FALLBACK_TYPE, download_headers, file_answer
from service.api.json_body import StrictRoute
from service.api.problems import problem
from service.api.rendering import View, answer
from service.api.state import ApiState
from service.api.upload_part import Part, UploadPart
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from service.domain.tasks import Sha256
from service.store import blob_refs

router = APIRouter(prefix="/v1/blobs", tags=["blobs"], route_class=StrictRoute)
Sha = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
UPLOAD_SCOPES = ("tasks:write", "benchmarks:write", "agents:write", "gradings:write", "runs:drive")
MAX_ASKED = 10_000


class Blob(View):
    sha256: str
    size_bytes: int


class MissingRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    digests: list[Sha256] = Field(max_length=MAX_ASKED)


class BlobList(View):
    data: list[Blob]


class MissingBlobs(View):
    missing: list[str]
    """Those of the digests that the project has not uploaded, each once, in the order asked."""


def _may_upload(caller: Caller) -> None:
    if not any(caller.may(s) for s in UPLOAD_SCOPES):
        raise Forbidden("scope_missing", f"this needs one of the scopes {', '.join(UPLOAD_SCOPES)}")


@router.post(":missing", operation_id="find_missing_blobs", response_model=MissingBlobs)
async def find_missing_blobs(body: MissingRequest, caller: TokenCaller, state: State) -> Response:
    """Tell which of up to 10 000 blobs are to be uploaded. What only other projects have counts as missing."""
    _may_upload(caller)
    async with state.db.reading() as tx:
        have = await blob_refs.project_has(tx, caller.project_id, body.digests)
    return answer(MissingBlobs(missing=[d for d in dict.fromkeys(body.digests) if d not in have]))


@router.post(
    ":batch",
    operation_id="put_small_blobs",
    response_model=BlobList,
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": {FALLBACK_TYPE: {"schema": {"type": "string"}}}}},
)
async def put_small_blobs(request: Request, caller: TokenCaller, state: State) -> Response:
    """Upload many small blobs in one body: for each ``<sha256> <bytes>``, a newline, and that many bytes.

    At most 1 000 blobs, and the bytes of any other request's body. All of them are stored, or none: 422
    ``wrong_digest``, ``bad_batch``.
    """
    _may_upload(caller)
    blobs = unpacked(await request.body())
    await asyncio.to_thread(state.blobs.store_many, blobs)
    sizes = [(sha, len(data)) for sha, data in blobs.items()]
    async with state.db.transaction() as tx:
        await blob_refs.add_refs(tx, caller.project_id, blob_refs.UPLOAD, caller.project_id, sizes)
    return answer(BlobList(data=[Blob(sha256=sha, size_bytes=size) for sha, size in sizes]), 201)


@router.head("/{sha256}", operation_id="head_blob", response_class=Response, status_code=200)
async def head_blob(sha256: Sha, caller: TokenCaller, state: State) -> Response:
    """Tell how much is there: 200 all of it, 204 ``Upload-Offset`` bytes of a broken upload, 404 nothing."""
    _may_upload(caller)
    async with state.db.reading() as tx:
        sizes = await blob_refs.project_sizes(tx, caller.project_id, [sha256])
    if sha256 in sizes:
        return Response(status_code=200, headers=_progress(sizes[sha256], complete=True))
    offset = await state.blobs.upload_offset(caller.project_id, sha256)
    if offset == 0:
        return problem(404, "not_found", headers=_progress(0, complete=False))
    return Response(status_code=204, headers=_progress(offset, complete=False))


@router.put("/{sha256}", operation_id="put_blob", response_model=Blob, status_code=201)
async def put_blob(sha256: Sha, request: Request, caller: TokenCaller, state: State, part: Part) -> Response:
    """Upload a blob, or from ``Upload-Offset`` (or ``Content-Range``) on the rest of it.

    Its size is ``Upload-Length``, the size in ``Content-Range``, or the offset and this body's Content-Length. 201 when
    all bytes are there and have this digest; 204 with ``Upload-Offset`` when the body ended before that; 409 tells the
    offset that is right.
    """
    _may_upload(caller)
    return await _receive(request, state, caller, sha256, part)


@router.patch("/{sha256}", operation_id="append_blob", response_model=Blob, status_code=201)
async def append_blob(sha256: Sha, request: Request, caller: TokenCaller, state: State, part: Part) -> Response:
    """As PUT, for the rest of an upload: the offset is required."""
    _may_upload(caller)
    if not {"upload-offset", "content-range"} & set(request.headers):
        raise Invalid("upload_offset_missing", "PATCH needs Upload-Offset")
    return await _receive(request, state, caller, sha256, part)


@router.get("/{sha256}", operation_id="get_blob", response_class=Response)
async def get_blob(sha256: Sha, request: Request, caller: TokenCaller, state: State) -> Response:
    """Download a blob of the project. Needs ``hidden:read``: a digest may be that of a hidden asset."""
    caller.require("hidden:read")
    async with state.db.reading() as tx:
        sizes = await blob_refs.project_sizes(tx, caller.project_id, [sha256])
    if sha256 not in sizes:
        raise NotFound("not_found")
    headers = download_headers(sha256, f'"{sha256}"')
    return file_answer(request, state.blobs.open(sha256), sizes[sha256], FALLBACK_TYPE, headers)


async def _receive(request: Request, state: ApiState, caller: Caller, sha256: str, part: UploadPart) -> Response:
    limit = state.config.max_blob_bytes
    if part.total > limit:
        raise TooLarge("blob_too_large", f"a blob has at most {limit} bytes")
    blobs, project = state.blobs, caller.project_id
    try:
        complete = await blobs.upload_append(project, sha256, part.offset, _body(request), total=part.total)
    except Conflict as error:
        there = error.fields.get("offset")
        headers = {} if there is None else _progress(int(there), complete=False)
        raise Conflict(error.type, error.detail, headers=headers, **error.fields) from error
    if not complete:
        there = await blobs.upload_offset(project, sha256)
        return Response(status_code=204, headers=_progress(there, complete=False))
    async with state.db.transaction() as tx:
        await blob_refs.add_refs(tx, project, blob_refs.UPLOAD, project, [(sha256, part.total)])
    return answer(Blob(sha256=sha256, size_bytes=part.total), 201, _progress(part.total, complete=True))


async def _body(request: Request) -> AsyncGenerator[bytes]:
    """Yield the body; a client that goes away ends it, and what came is kept."""
    with suppress(ClientDisconnect):
        async for chunk in request.stream():
            yield chunk


def _progress(offset: int, *, complete: bool) -> dict[str, str]:
    return {
        "Upload-Offset": str(offset),
        "Upload-Complete": "?1" if complete else "?0",
        "Cache-Control": "private, no-store",
    }

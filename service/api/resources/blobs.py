"""``/v1/blobs/{sha256}``: only missing bytes travel, and an upload that broke off goes on from where it was.

The names follow the IETF draft on resumable uploads: ``Upload-Offset`` (bytes that are there), ``Upload-Complete``.
A digest that only other projects have is unknown here: whoever wants it uploads the bytes.
"""

import re
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request
from pydantic import BaseModel
from starlette.responses import Response

from service.api.auth import Caller, State, TokenCaller
from service.api.downloads import FALLBACK_TYPE, download_headers, file_answer
from service.api.json_body import StrictRoute
from service.api.problems import problem
from service.api.rendering import answer
from service.api.state import ApiState
from service.domain.errors import Forbidden, Invalid, NotFound, TooLarge
from service.store import blob_refs

router = APIRouter(prefix="/v1/blobs", tags=["blobs"], route_class=StrictRoute)
Sha = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\Z")
UPLOAD_SCOPES = ("tasks:write", "agents:write")


class Blob(BaseModel):
    sha256: str
    size_bytes: int


def _may_upload(caller: Caller) -> None:
    if not any(caller.may(s) for s in UPLOAD_SCOPES):
        raise Forbidden("scope_missing", f"this needs one of the scopes {', '.join(UPLOAD_SCOPES)}")


@router.head("/{sha256}", operation_id="head_blob", status_code=200)
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
async def put_blob(
    sha256: Sha,
    request: Request,
    caller: TokenCaller,
    state: State,
    upload_offset: Annotated[str | None, Header(max_length=20)] = None,
    content_range: Annotated[str | None, Header(max_length=80)] = None,
) -> Response:
    """Upload a blob, or the rest of it from ``Upload-Offset`` on (409 tells the offset that is right).

    201 when all bytes are there and have this digest; 204 when the body ended before that.
    """
    _may_upload(caller)
    offset = _offset(upload_offset, content_range)
    return await _receive(request, state, caller, sha256, offset)


@router.patch("/{sha256}", operation_id="append_blob", response_model=Blob, status_code=201)
async def append_blob(
    sha256: Sha,
    request: Request,
    caller: TokenCaller,
    state: State,
    upload_offset: Annotated[str | None, Header(max_length=20)] = None,
    content_range: Annotated[str | None, Header(max_length=80)] = None,
) -> Response:
    """As PUT with ``Upload-Offset``, which it requires."""
    _may_upload(caller)
    if upload_offset is None and content_range is None:
        raise Invalid("upload_offset_missing", "PATCH needs Upload-Offset")
    return await _receive(request, state, caller, sha256, _offset(upload_offset, content_range))


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


async def _receive(request: Request, state: ApiState, caller: Caller, sha256: str, offset: int) -> Response:
    length = request.headers.get("content-length", "0")
    limit = state.config.max_blob_bytes
    if length.isdecimal() and offset + int(length[:20]) > limit:
        raise TooLarge("blob_too_large", f"a blob has at most {limit} bytes")
    stored = await state.blobs.upload_append(caller.project_id, sha256, offset, request.stream(), limit=limit)
    if stored is None:
        there = await state.blobs.upload_offset(caller.project_id, sha256)
        return Response(status_code=204, headers=_progress(there, complete=False))
    async with state.db.transaction() as tx:
        await blob_refs.add_refs(tx, caller.project_id, "upload", caller.project_id, [stored])
    return answer(Blob(sha256=sha256, size_bytes=stored[1]), 201, _progress(stored[1], complete=True))


def _offset(upload_offset: str | None, content_range: str | None) -> int:
    if upload_offset is not None:
        if not (upload_offset.isascii() and upload_offset.isdecimal()):
            raise Invalid("bad_upload_offset", "Upload-Offset is a number of bytes")
        return int(upload_offset)
    if content_range is None:
        return 0
    match = _CONTENT_RANGE.match(content_range)
    if match is None or int(match[2]) < int(match[1]):
        raise Invalid("bad_content_range", "Content-Range is bytes <first>-<last>/<size or *>")
    return int(match[1])


def _progress(offset: int, *, complete: bool) -> dict[str, str]:
    return {
        "Upload-Offset": str(offset),
        "Upload-Complete": "?1" if complete else "?0",
        "Cache-Control": "private, no-store",
    }

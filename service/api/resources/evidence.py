"""``/v1/runs/{id}/evidence``: what the deliverable says, as text and pictures; with what was left out, and what failed."""

import asyncio
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import Caller, GradingsRead, GradingsWrite, State
from service.api.conditional import none_match
from service.api.downloads import download_headers, file_answer
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED
from service.api.lookups import run_or_404
from service.api.prefixed import only_known
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.api.state import ApiState
from service.api.waiting import cache_control
from service.domain.errors import Conflict, NotFound
from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceState, Omitted
from service.domain.run_states import Phase
from service.lifecycle.evidence import read_document
from service.store import audit, evidence
from service.store.database import Tx
from service.store.rows import RunRow
from service.store.rows_grading import EvidenceRow

router = APIRouter(prefix="/v1/runs", tags=["artifacts"], route_class=StrictRoute)
OnlyFile = Annotated[str | None, Query(max_length=5000)]
_PNG = b"\x89PNG"


class Evidence(View):
    """The evidence document of a run's deliverable. All text in it comes from the agent and is untrusted."""

    run_id: str
    state: str
    """pending | ready | unavailable"""
    cause: str | None
    """Why it is unavailable: nothing_sealed, not_made, no_rooms, room_failed, extractor_error …"""
    digest: Digest | None
    """Of the deliverable."""
    version: str | None
    """Of what made the document."""
    took_s: float | None
    made_at: Timestamp | None
    files: list[EvidenceFile]
    """In the order of the manifest; empty unless ready. With ``file``: that one."""
    not_listed: int
    """Files beyond the first 1 000, which nobody looked at."""
    skipped: list[tuple[str, str]]
    """Path and kind of entries that could not be sealed."""
    omitted: Omitted
    """What was left out of all files, counted."""


def _view(run: RunRow, row: EvidenceRow | None, document: EvidenceDocument | None, only: str | None) -> Evidence:
    state, cause = _standing(run, row)
    if state is EvidenceState.READY and document is None:
        state, cause = EvidenceState.UNAVAILABLE, "lost"
    shown = document or EvidenceDocument()
    files = [f for f in shown.files if only is None or f.path == only]
    if document is not None and only is not None and not files:
        raise NotFound("not_found")
    return Evidence(
        run_id=run.id,
        state=state,
        cause=cause,
        digest=sha256_name(run.deliverable_digest) if run.deliverable_digest else None,
        version=row.version if row is not None else None,
        took_s=row.took_s if row is not None else None,
        made_at=row.made_at if row is not None else None,
        files=files,
        not_listed=shown.not_listed,
        skipped=list(shown.skipped),
        omitted=shown.omitted,
    )


def _standing(run: RunRow, row: EvidenceRow | None) -> tuple[EvidenceState, str | None]:
    """Return (state, cause). Nothing is made before somebody wants it."""
    if row is not None:
        return row.state, row.cause
    if run.phase is not Phase.DONE and run.deliverable_digest is None:
        return EvidenceState.PENDING, None
    return EvidenceState.UNAVAILABLE, "nothing_sealed" if run.deliverable_digest is None else "not_made"


async def _found(tx: Tx, run: RunRow) -> EvidenceRow | None:
    digest = run.deliverable_digest
    return None if digest is None else await evidence.find(tx, run.project_id, digest)


@router.get("/{run_id}/evidence", operation_id="get_evidence", response_model=Evidence, responses=UNCHANGED)
async def get_evidence(
    run_id: str, request: Request, caller: GradingsRead, state: State, file: OnlyFile = None
) -> Response:
    """Return the document, or of it one ``file`` by its path. The ETag changes with its state; a ready one never changes."""
    only_known(request, ("file",), ())
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        row = await _found(tx, run)
    standing, cause = _standing(run, row)
    tag = f'"{standing}.{cause or ""}.{(row.sha256 if row else None) or ""}"'
    headers = {"ETag": tag, "Cache-Control": cache_control(done=standing is not EvidenceState.PENDING)}
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return answer(await _shown(state, run, row, file), headers=headers)


async def _shown(state: ApiState, run: RunRow, row: EvidenceRow | None, only: str | None) -> Evidence:
    ready = row is not None and row.state is EvidenceState.READY
    document = await asyncio.to_thread(read_document, state.blobs, row) if row is not None and ready else None
    return _view(run, row, document, only)


@router.post("/{run_id}/evidence", operation_id="make_evidence", response_model=Evidence, status_code=202)
async def make_evidence(run_id: str, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Have the document made if it is not there; one that is ready stays. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        run = await run_or_404(tx, caller, run_id)
        if run.deliverable_digest is None:
            raise Conflict("run_not_sealed", "the run has no sealed deliverable")
        present = await evidence.present(tx, run.project_id, run.deliverable_digest)
        if present is not None and present.sha256 is not None and not state.blobs.exists(present.sha256):
            await evidence.forget(tx, present.id)
        row = await evidence.request(tx, run.project_id, run.deliverable_digest, queued=True)
        await audit.record(tx, caller.project_id, caller.token.id, "run.evidence", run_id, {})
        status = 200 if row.state is EvidenceState.READY else 202
        return Made(_view(run, row, EvidenceDocument(), None), status, f"/v1/runs/{run_id}/evidence")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/evidence", work)


@router.head("/{run_id}/evidence/images/{sha256}", include_in_schema=False)
@router.get("/{run_id}/evidence/images/{sha256}", operation_id="get_evidence_image", response_class=Response)
async def get_evidence_image(
    run_id: str, sha256: str, request: Request, caller: GradingsRead, state: State
) -> Response:
    """Download one picture of the document, PNG or JPEG, encoded by us: always an attachment. Range and If-None-Match work."""
    size = await _picture(state, caller, run_id, sha256)
    file = state.blobs.open(sha256)
    png = await asyncio.to_thread(_is_png, file)
    headers = download_headers(f"{sha256[:16]}.{'png' if png else 'jpg'}", f'"{sha256}"')
    return file_answer(request, file, size, "image/png" if png else "image/jpeg", headers)


async def _picture(state: ApiState, caller: Caller, run_id: str, sha256: str) -> int:
    """Return its bytes. Raises NotFound for what is no picture of this run's document."""
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        row = await _found(tx, run)
        size = await evidence.picture_bytes(tx, row, sha256) if row is not None else None
    if size is None:
        raise NotFound("not_found")
    return size


def _is_png(file: BinaryIO) -> bool:
    head = file.read(len(_PNG))
    file.seek(0)
    return head == _PNG

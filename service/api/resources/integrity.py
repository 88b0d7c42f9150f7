"""``/v1/runs/{id}/integrity``: whether each file of the deliverable opens as what it claims to be."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import GradingsWrite, RunsRead, State
from service.api.conditional import none_match
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED
from service.api.lookups import run_or_404
from service.api.rendering import Digest, View, answer, sha256_name
from service.api.waiting import cache_control
from service.domain.errors import Conflict
from service.domain.integrity import FileReport, ReportState
from service.domain.run_states import Phase
from service.store import audit, integrity
from service.store.database import Tx
from service.store.rows import IntegrityRow, RunRow

router = APIRouter(prefix="/v1/runs", tags=["artifacts"], route_class=StrictRoute)


class Integrity(View):
    """The integrity report of a run's deliverable. What it quotes from files is untrusted text."""

    run_id: str
    state: str
    """pending | ready | unavailable"""
    cause: str | None
    """Why it is unavailable: nothing_sealed, not_made, no_rooms, room_failed, took_too_long …"""
    digest: Digest | None
    """Of the deliverable."""
    version: str | None
    """Of what made the report."""
    problems: int | None
    """Files with which something is wrong; null unless ready."""
    files: list[FileReport]
    """In the order of the manifest; empty unless ready."""
    not_listed: int
    """Files beyond the first 1 000, which nobody looked at."""


def _view(run: RunRow, row: IntegrityRow | None) -> Integrity:
    state, cause = _standing(run, row)
    report = row.report if row is not None else None
    return Integrity(
        run_id=run.id,
        state=state,
        cause=cause,
        digest=sha256_name(run.deliverable_digest) if run.deliverable_digest else None,
        version=row.version if row is not None else None,
        problems=row.problems if row is not None else None,
        files=list(report.files) if report is not None else [],
        not_listed=report.not_listed if report is not None else 0,
    )


def _standing(run: RunRow, row: IntegrityRow | None) -> tuple[ReportState, str | None]:
    """Return (state, cause). Pending is only what somebody is about to make."""
    if row is not None and (row.state is not ReportState.PENDING or row.queued or run.phase is not Phase.DONE):
        return row.state, row.cause
    if run.phase is not Phase.DONE:
        return ReportState.PENDING, None
    return ReportState.UNAVAILABLE, "nothing_sealed" if run.deliverable_digest is None else "not_made"


async def _found(tx: Tx, run: RunRow) -> IntegrityRow | None:
    digest = run.deliverable_digest
    return None if digest is None else await integrity.find(tx, run.project_id, digest)


@router.get("/{run_id}/integrity", operation_id="get_integrity", response_model=Integrity, responses=UNCHANGED)
async def get_integrity(run_id: str, request: Request, caller: RunsRead, state: State) -> Response:
    """Return the report as far as it is there. The ETag changes with its state; a ready one never changes."""
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        found = _view(run, await _found(tx, run))
    tag = f'"{found.state}.{found.cause or ""}.{found.version or ""}.{(run.deliverable_digest or "")[:32]}"'
    headers = {"ETag": tag, "Cache-Control": cache_control(done=found.state != ReportState.PENDING)}
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return answer(found, headers=headers)


@router.post("/{run_id}/integrity", operation_id="make_integrity", response_model=Integrity, status_code=202)
async def make_integrity(run_id: str, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Have a report made that is unavailable; one that is ready stays. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        run = await run_or_404(tx, caller, run_id)
        if run.deliverable_digest is None:
            raise Conflict("run_not_sealed", "the run has no sealed deliverable")
        row = await integrity.request(tx, run.project_id, run.deliverable_digest, queued=True)
        await audit.record(tx, caller.project_id, caller.token.id, "run.integrity", run_id, {})
        status = 200 if row.state is ReportState.READY else 202
        return Made(_view(run, row), status, f"/v1/runs/{run_id}/integrity")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/integrity", work)

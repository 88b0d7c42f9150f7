"""``/v1/runs/{id}/attempts``: every attempt stays visible, with its provenance and its raw logs."""

from typing import Annotated, Any, BinaryIO, Literal, cast

import zstandard
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from service.api.auth import RunsRead, State
from service.api.downloads import download_headers, file_answer
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import Timestamp, View, answer
from service.domain.errors import Conflict, NotFound
from service.store import attempts
from service.store.rows import AttemptRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)
MAX_ATTEMPT = 2**31 - 1
Number = Annotated[int, Path(ge=1, le=MAX_ATTEMPT)]


class Log(View):
    total_bytes: int | None
    """What the program wrote."""
    log_bytes: int | None
    """What the raw log holds of it."""


class Attempt(View):
    run_id: str
    n: int
    state: str
    """claimed | bound | running | ended | collected | released | lost"""
    ended_because: str | None
    host_id: str
    runtime: str | None
    environment_image: str | None
    kit_image: str | None
    argv: list[str] | None
    env: dict[str, str] | None
    """Secrets redacted."""
    provenance: dict[str, Any]
    """What repeats it: models, effort as it was sent, digests of prompt template, rendered prompt and configuration files,
    stop ladder and hang rule. No secrets."""
    attestation: dict[str, Any] | None
    evidence: dict[str, Any] | None
    logs: dict[str, Log]
    """Sealed raw logs by stream."""
    created_at: Timestamp
    started_at: Timestamp | None
    deadline_at: Timestamp | None
    ended_at: Timestamp | None
    collected_at: Timestamp | None
    released_at: Timestamp | None


class AttemptList(View):
    data: list[Attempt]


def _view(row: AttemptRow) -> Attempt:
    logs = {name: Log(total_bytes=log.get("bytes"), log_bytes=log.get("log_bytes")) for name, log in row.logs.items()}
    return Attempt(
        run_id=row.run_id,
        n=row.n,
        state=row.state,
        ended_because=row.ended_because,
        host_id=row.host_id,
        runtime=row.runtime,
        environment_image=row.environment_image,
        kit_image=row.kit_image,
        argv=row.argv,
        env=row.env,
        provenance=row.provenance,
        attestation=row.attestation,
        evidence=row.evidence,
        logs=logs,
        created_at=row.created_at,
        started_at=row.started_at,
        deadline_at=row.deadline_at,
        ended_at=row.ended_at,
        collected_at=row.collected_at,
        released_at=row.released_at,
    )


@router.get("/{run_id}/attempts", operation_id="list_attempts", response_model=AttemptList)
async def list_attempts(run_id: str, caller: RunsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        rows = await attempts.list_for_run(tx, run_id)
    return answer(AttemptList(data=[_view(r) for r in rows]))


@router.get("/{run_id}/attempts/{n}", operation_id="get_attempt", response_model=Attempt)
async def get_attempt(run_id: str, n: Number, caller: RunsRead, state: State) -> Response:
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        row = await attempts.get(tx, run_id, n)
    if row is None:
        raise NotFound("not_found")
    return answer(_view(row))


@router.get("/{run_id}/attempts/{n}/logs/{stream}", operation_id="get_log", response_class=Response)
async def get_log(
    run_id: str, n: Number, stream: Literal["stdout", "stderr"], request: Request, caller: RunsRead, state: State
) -> Response:
    """Download what the program wrote, byte for byte up to the limit. Range works.

    409 ``log_not_sealed`` while the attempt lives: until then the events hold the output.
    """
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        row = await attempts.get(tx, run_id, n)
    if row is None:
        raise NotFound("not_found")
    log = row.logs.get(stream)
    if log is None or not log.get("sha256"):
        raise Conflict("log_not_sealed", "the attempt has no sealed log of this stream (yet)")
    headers = download_headers(f"{run_id}-{n}-{stream}.log", f'"{log["sha256"]}-{stream}"')
    packed = state.blobs.open(log["sha256"])
    plain = zstandard.ZstdDecompressor().stream_reader(packed, closefd=True, read_across_frames=True)
    size = int(log["log_bytes"])
    return file_answer(request, cast("BinaryIO", plain), size, "text/plain; charset=utf-8", headers)

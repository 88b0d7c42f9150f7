"""``/v1/runs/{id}/artifacts``: the entries of the sealed deliverable, their bytes, and all of them as one archive."""

from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from service.api.auth import Caller, RunsRead, State
from service.api.conditional import none_match
from service.api.downloads import download_headers, file_answer, safe_type
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.pagination import MAX_LIMIT, ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Digest, View, answer, sha256_name
from service.api.state import ApiState
from service.api.zip_stream import zip_of
from service.domain.artifacts import REASONS, EntryKind
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.integrity import FileReport
from service.store import artifacts, integrity
from service.store.database import Tx
from service.store.rows import ArtifactRow, Cursor, RunRow

router = APIRouter(prefix="/v1/runs", tags=["artifacts"], route_class=StrictRoute)


class Artifact(View):
    path: str
    """From the workspace; '%' and bytes that are not UTF-8 are percent-encoded, so it is exact and reversible."""
    kind: str
    """file | directory | skipped_symlink | skipped_fifo | skipped_socket | skipped_device | skipped_over_limit | …"""
    reason: str | None
    """Why it was not taken, in words; null for files and directories."""
    size_bytes: int
    sha256: Digest | None
    mime: str | None
    """By signature; null where unknown."""
    link_target: str | None
    mtime: float | None
    """Unix seconds."""
    href: str | None
    """Relative URL of the bytes; null for what has none."""
    opens: bool | None
    """Whether it opens as what it claims; null where nobody looked (yet). Details: the run's integrity report."""
    problems: list[str] | None
    """Types of what is wrong with the file: empty, truncated, type_mismatch …; null without a report."""


def _view(row: ArtifactRow, checked: FileReport | None) -> Artifact:
    stored = row.kind == EntryKind.FILE and row.sha256 is not None
    return Artifact(
        path=row.path,
        kind=row.kind,
        reason=REASONS.get(row.kind),
        size_bytes=row.size_bytes,
        sha256=sha256_name(row.sha256) if row.sha256 else None,
        mime=row.mime,
        link_target=row.link_target,
        mtime=row.mtime,
        href=f"/v1/runs/{row.run_id}/artifacts/{quote(row.path)}" if stored else None,
        opens=checked.opens if checked else None,
        problems=[p.type for p in checked.problems] if checked else None,
    )


@router.get("/{run_id}/artifacts", operation_id="list_artifacts", response_model=ListOf[Artifact])
async def list_artifacts(run_id: str, request: Request, caller: RunsRead, state: State, page: Paging) -> Response:
    """List the entries in the order of the manifest, those that could not be taken included."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        found = await artifacts.list(tx, run_id, _position(page.cursor), page.limit)
        checked = await _checked(tx, run)
    views = [_view(row, checked.get(row.path)) for row in found.items]
    return answer(ListOf[Artifact](data=views, next=next_link(request, found.next)))


@router.head("/{run_id}/artifacts/{path:path}", include_in_schema=False)
@router.get("/{run_id}/artifacts/{path:path}", operation_id="get_artifact", response_class=Response)
async def get_artifact(run_id: str, path: str, request: Request, caller: RunsRead, state: State) -> Response:
    """Download one file: always an attachment. Range, If-Range and If-None-Match work."""
    row = await _find(state, caller, run_id, path)
    if row.kind != EntryKind.FILE or row.sha256 is None:
        raise Conflict("artifact_without_content", f"this entry has no bytes: {row.kind}")
    headers = download_headers(path.rpartition("/")[2], f'"{row.sha256}"')
    return file_answer(request, state.blobs.open(row.sha256), row.size_bytes, safe_type(row.mime), headers)


@router.head("/{run_id}/archive.zip", include_in_schema=False)
@router.get("/{run_id}/archive.zip", operation_id="get_archive", response_class=Response)
async def get_archive(run_id: str, request: Request, caller: RunsRead, state: State) -> Response:
    """Download all files as one zip, with a manifest of every entry, also of what was not taken and why.

    Its ETag is the deliverable's digest. Names are those of the list, with ``\\`` and ``:`` percent-encoded.
    """
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        if run.deliverable_digest is None:
            raise Conflict("not_sealed", "the run has no sealed deliverable (yet)")
        entries = await _all(tx, run_id)
    tag = f'"{run.deliverable_digest}"'
    headers = download_headers(f"{run_id}.zip", tag)
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": headers["Cache-Control"]})
    if request.method == "HEAD":
        return Response(status_code=200, headers=headers, media_type="application/zip")
    return StreamingResponse(zip_of(entries, state.blobs.open), 200, headers, "application/zip")


async def _checked(tx: Tx, run: RunRow) -> dict[str, FileReport]:
    """What the integrity report says of each path; nothing where there is none."""
    digest = run.deliverable_digest
    row = await integrity.find(tx, run.project_id, digest) if digest is not None else None
    return row.report.by_path() if row is not None and row.report is not None else {}


async def _find(state: ApiState, caller: Caller, run_id: str, path: str) -> ArtifactRow:
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        row = await artifacts.by_path(tx, run_id, path)
    if row is None:
        raise NotFound("not_found")
    return row


async def _all(tx: Tx, run_id: str) -> list[ArtifactRow]:
    rows: list[ArtifactRow] = []
    cursor = None
    while True:
        found = await artifacts.list(tx, run_id, _position(cursor), MAX_LIMIT)
        rows += found.items
        cursor = found.next
        if cursor is None:
            return rows


def _position(cursor: Cursor | None) -> int:
    if cursor is None:
        return 0
    if not (cursor[0].isascii() and cursor[0].isdecimal() and len(cursor[0]) < 10):
        raise Invalid("bad_cursor", "the cursor is not one of this list")
    return int(cursor[0])

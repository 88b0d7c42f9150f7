"""``/v1/publications``: what was handed over for good; ``/published/…`` is the same for anybody, where it is public."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from service.api.auth import ReportsRead, ReportsWrite, State
from service.api.charging import check_failures, note_failure
from service.api.downloads import download_headers, file_answer
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.api.resources.reports import PAGE_HEADERS
from service.api.resources.tasks import HIDDEN_READ
from service.api.state import ApiState
from service.domain.errors import NotFound
from service.domain.publications import PublicationRequest, Withdrawal
from service.lifecycle.handover import publishing
from service.store import audit, publications
from service.store.publications import PublicationRow

router = APIRouter(prefix="/v1/publications", tags=["reports"], route_class=StrictRoute)
open_router = APIRouter(prefix="/published", include_in_schema=False)
_PAGE = "text/html; charset=utf-8"
_SHORT = {"Cache-Control": "public, max-age=60"}
"""What is withdrawn is gone from everywhere a minute later."""


class WithdrawnRow(View):
    agent: str
    reason: str
    at: Timestamp


class Publication(View):
    id: str
    name: str
    number: int
    """Of those with this name, from 1."""
    export: str
    """Operation that made what was published."""
    profile: str
    public: bool
    url: str | None
    """For anybody; null unless it is public."""
    digest: Digest
    """Of the report as it was published."""
    archive: Digest
    """Of the zip: tables, figures, ``verify.py``."""
    summary: dict[str, Any]
    """kind, title, benchmark, plan, evaluations, agents, tasks, runs, notice"""
    withdrawn: list[WithdrawnRow]
    previous: str | None
    """The one before it, of the same name."""
    newest: str | None
    """Null where it is the newest itself. Both are null in lists."""
    created_at: Timestamp


class PublicationQuery(ListQuery):
    name: Values = ()


class PublicationPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    public: bool


def _view(row: PublicationRow, near: tuple[str | None, str | None] = (None, None)) -> Publication:
    return Publication(
        id=row.id, name=row.name, number=row.number, export=row.operation_id, profile=row.profile, public=row.public,
        url=f"/published/{row.id}" if row.public else None, digest=sha256_name(row.report_sha256),
        archive=sha256_name(row.archive_sha256), summary=row.summary,
        withdrawn=[WithdrawnRow(agent=one.agent, reason=one.reason, at=one.at) for one in row.withdrawn],
        previous=near[0], newest=near[1], created_at=row.created_at,
    )  # fmt: skip


@router.post(
    "",
    operation_id="create_publication",
    response_model=Publication,
    status_code=201,
    responses={200: {"model": Publication, "description": "it was there"}},
)
async def create_publication(body: PublicationRequest, caller: ReportsWrite, state: State) -> Response:
    """Publish an export: an immutable snapshot at an address that stays. The same export and name again answer 200."""
    row, made = await publishing.publish(state.db, state.blobs, caller.project_id, body, caller.token.id)
    if made:
        await _note(state, caller.project_id, caller.token.id, "publication.create", row)
    async with state.db.reading() as tx:
        near = await publications.neighbours(tx, row)
    return answer(_view(row, near), 201 if made else 200, {"Location": f"/v1/publications/{row.id}"})


@router.get("", operation_id="list_publications", response_model=ListOf[Publication], responses=UNCHANGED)
async def list_publications(
    request: Request, caller: ReportsRead, state: State, page: Paging, query: Annotated[PublicationQuery, Query()]
) -> Response:
    """List publications. Sorts: created_at."""
    listed = source(request, publications.LISTING, caller.project_id, query, page, name=query.name)
    return await answer_list(request, state, listed, _view, names=chosen(query.fields, Publication), total=query.total)


@router.get("/{publication_id}", operation_id="get_publication", response_model=Publication)
async def get_publication(publication_id: str, caller: ReportsRead, state: State) -> Response:
    row = await _found(state, caller.project_id, publication_id)
    async with state.db.reading() as tx:
        return answer(_view(row, await publications.neighbours(tx, row)))


@router.patch("/{publication_id}", operation_id="open_publication", response_model=Publication)
async def open_publication(publication_id: str, body: PublicationPatch, caller: ReportsWrite, state: State) -> Response:
    """Let anybody who has the address read it, or nobody else any more. 409 ``export_not_public``."""
    async with state.db.transaction() as tx:
        row = await publications.get(tx, caller.project_id, publication_id, lock=True)
        if row is None:
            raise NotFound("not_found")
        publishing.check_public(body.public, row.profile)
        row = await publications.change(tx, row, {"public": body.public}, {})
        near = await publications.neighbours(tx, row)
        await audit.record(tx, caller.project_id, caller.token.id, "publication.open", row.id, {"public": body.public})
    return answer(_view(row, near))


@router.post("/{publication_id}/withdrawals", operation_id="withdraw_row", response_model=Publication)
async def withdraw_row(publication_id: str, body: Withdrawal, caller: ReportsWrite, state: State) -> Response:
    """Take an agent's figures out of what is shown, with the reason in their place. The zip stays as it was published."""
    row = await publishing.withdraw(state.db, state.blobs, caller.project_id, publication_id, body, caller.token.id)
    await _note(state, caller.project_id, caller.token.id, "publication.withdraw", row, body.model_dump())
    async with state.db.reading() as tx:
        near = await publications.neighbours(tx, row)
    return answer(_view(row, near))


@router.get("/{publication_id}/report", operation_id="get_published_report", response_class=Response)
async def get_published_report(publication_id: str, request: Request, caller: ReportsRead, state: State) -> Response:
    """Return the report as it is shown, as JSON, or with ``Accept: text/html`` as its page."""
    row = await _found(state, caller.project_id, publication_id)
    if row.hidden:
        caller.require(HIDDEN_READ)
    if "text/html" in request.headers.get("accept", ""):
        return _page(request, state, row)
    return _report(request, state, row)


@router.get("/{publication_id}/archive.zip", operation_id="get_published_archive", response_class=Response)
async def get_published_archive(publication_id: str, request: Request, caller: ReportsRead, state: State) -> Response:
    """Download the zip that was published (ranges work)."""
    row = await _found(state, caller.project_id, publication_id)
    if row.hidden:
        caller.require(HIDDEN_READ)
    return _archive(request, state, row)


@open_router.get("/{publication_id}")
async def published_page(publication_id: str, request: Request, state: State) -> Response:
    return _page(request, state, await _public(request, state, publication_id), _SHORT)


@open_router.get("/{publication_id}/report.json")
async def published_report(publication_id: str, request: Request, state: State) -> Response:
    return _report(request, state, await _public(request, state, publication_id), _SHORT)


@open_router.get("/{publication_id}/archive.zip")
async def published_archive(publication_id: str, request: Request, state: State) -> Response:
    return _archive(request, state, await _public(request, state, publication_id), _SHORT)


async def _public(request: Request, state: ApiState, publication_id: str) -> PublicationRow:
    """Return it without asking who reads; whoever tries addresses that are none is slowed down."""
    async with state.db.reading() as tx:
        row = await publications.get_public(tx, publication_id)
    if row is None:
        check_failures(request, state, b"")
        note_failure(request, state)
        raise NotFound("not_found")
    return row


async def _found(state: ApiState, project_id: str, publication_id: str) -> PublicationRow:
    async with state.db.reading() as tx:
        row = await publications.get(tx, project_id, publication_id)
    if row is None:
        raise NotFound("not_found")
    return row


def _page(request: Request, state: ApiState, row: PublicationRow, more: dict[str, str] | None = None) -> Response:
    headers = {**PAGE_HEADERS, "ETag": f'"{row.page_sha256}"', **(more or {})}
    return file_answer(request, state.blobs.open(row.page_sha256), row.page_bytes, _PAGE, headers)


def _report(request: Request, state: ApiState, row: PublicationRow, more: dict[str, str] | None = None) -> Response:
    headers = {
        "X-Content-Type-Options": "nosniff",
        "ETag": f'"{row.shown_sha256}"',
        "Cache-Control": "private, no-cache",
    }
    blob = state.blobs.open(row.shown_sha256)
    return file_answer(request, blob, row.shown_bytes, "application/json", {**headers, **(more or {})})


def _archive(request: Request, state: ApiState, row: PublicationRow, more: dict[str, str] | None = None) -> Response:
    headers = download_headers(f"{row.name}-{row.number}.zip", f'"{row.archive_sha256}"') | (more or {})
    return file_answer(request, state.blobs.open(row.archive_sha256), row.archive_bytes, "application/zip", headers)


async def _note(
    state: ApiState, project_id: str, actor: str, action: str, row: PublicationRow, detail: dict[str, Any] | None = None
) -> None:
    async with state.db.transaction() as tx:
        await audit.record(tx, project_id, actor, action, row.id, detail or {"name": row.name, "number": row.number})

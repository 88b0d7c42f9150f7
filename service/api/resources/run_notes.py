"""``/v1/runs/{id}/notes`` and their search (NEEDS B18)."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field, model_validator
from starlette.responses import Response

from service.api.auth import RunsRead, RunsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.api.resources.leases import Body
from service.domain.errors import Conflict, Invalid, NotFound
from service.store import audit, run_notes
from service.store.database import Tx
from service.store.rows import Slice
from service.store.run_notes import NewNote, NoteRow

router = APIRouter(prefix="/v1", tags=["runs"], route_class=StrictRoute)
Tag = Annotated[str, Field(pattern=r"^[^\s,]{1,64}$")]
Words = Annotated[str | None, Query(min_length=1, max_length=200)]


class NoteRequest(Body):
    """A text, tags, or both."""

    body: Annotated[str, Field(max_length=10_000)] = ""
    tags: Annotated[list[Tag], Field(max_length=32)] = Field(default_factory=list[str])
    seq: int | None = Field(default=None, ge=1)
    """Number of the event that it is about; null: the run as a whole."""

    @model_validator(mode="after")
    def _something(self) -> "NoteRequest":
        if not self.body.strip() and not self.tags:
            raise ValueError("a note has a text or a tag")
        return self


class Note(View):
    id: str
    run_id: str
    seq: int | None
    author: str
    """API token."""
    body: str
    tags: list[str]
    created_at: Timestamp


def _view(row: NoteRow) -> Note:
    return Note(**{name: getattr(row, name) for name in Note.model_fields if name != "tags"}, tags=list(row.tags))


def _list(request: Request, found: Slice[NoteRow]) -> Response:
    return answer(ListOf[Note](data=[_view(row) for row in found.items], next=next_link(request, found.next)))


@router.post("/runs/{run_id}/notes", operation_id="create_run_note", response_model=Note, status_code=201)
async def create_run_note(
    run_id: str, body: NoteRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Put a note on a run, or on one of its events. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        run = await run_or_404(tx, caller, run_id)
        if body.seq is not None and body.seq > run.last_seq:
            raise Invalid("no_such_event", f"the run has {run.last_seq} events")
        if await run_notes.count(tx, run_id) >= run_notes.MOST:
            raise Conflict("too_many_notes", f"a run has at most {run_notes.MOST} notes")
        new = NewNote(caller.token.id, body.body, tuple(dict.fromkeys(body.tags)), body.seq)
        row = await run_notes.add(tx, caller.project_id, run_id, new)
        return Made(_view(row), 201, f"/v1/runs/{run_id}/notes")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/notes", work)


@router.get("/runs/{run_id}/notes", operation_id="list_run_notes", response_model=ListOf[Note])
async def list_run_notes(run_id: str, request: Request, caller: RunsRead, state: State, page: Paging) -> Response:
    """List the notes of a run, newest first."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        await run_or_404(tx, caller, run_id)
        found = await run_notes.page(tx, caller.project_id, page, run_id=run_id)
    return _list(request, found)


@router.delete("/runs/{run_id}/notes/{note_id}", operation_id="delete_run_note", status_code=204)
async def delete_run_note(run_id: str, note_id: str, caller: RunsWrite, state: State) -> Response:
    """Take a note away, with its text."""
    async with state.db.transaction() as tx:
        await run_or_404(tx, caller, run_id)
        if not await run_notes.delete(tx, caller.project_id, run_id, note_id):
            raise NotFound("not_found")
        await audit.record(tx, caller.project_id, caller.token.id, "note.delete", note_id, {"run_id": run_id})
    return Response(status_code=204)


@router.get("/run-notes", operation_id="search_run_notes", response_model=ListOf[Note])
async def search_run_notes(
    request: Request, caller: RunsRead, state: State, page: Paging, tag: Words = None, text: Words = None
) -> Response:
    """List notes of all runs, newest first: with this tag, with this text in them (upper and lower case are the same)."""
    only_known(request, ("limit", "cursor", "tag", "text"), ())
    async with state.db.reading() as tx:
        found = await run_notes.page(tx, caller.project_id, page, tag=tag, words=text)
    return _list(request, found)

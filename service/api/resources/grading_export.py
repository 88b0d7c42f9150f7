"""``/v1/gradings/export.csv`` and ``.jsonl``: verdicts, criteria or votes as a table of any length."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from service.api.auth import Caller, GradingsRead, State
from service.api.downloads import download_headers
from service.api.grading_tables import Table, as_csv, as_jsonl, rows
from service.api.json_body import StrictRoute
from service.api.listing import split_ids
from service.api.prefixed import only_known
from service.api.resources.gradings import FILTERS, GradingQuery
from service.api.resources.tasks import HIDDEN_READ
from service.api.state import ApiState
from service.store.database import Database
from service.store.listing import ListFilter

router = APIRouter(prefix="/v1/gradings", tags=["gradings"], route_class=StrictRoute)


class ExportQuery(GradingQuery):
    table: Table = "verdicts"


Exported = Annotated[ExportQuery, Query()]


@router.get("/export.csv", operation_id="export_gradings_csv", response_class=Response)
async def export_gradings_csv(request: Request, caller: GradingsRead, state: State, query: Exported) -> Response:
    """Download gradings as CSV, oldest first, chosen by the filters of ``GET /v1/gradings``.

    ``table``: verdicts, criteria, or votes; one row each. Reasons and contents, which quote criteria, need ``hidden:read``. Text
    that a spreadsheet would take for a formula begins with an apostrophe.
    """
    pieces = rows(*_source(request, caller, state, query), query.table, hidden=caller.may(HIDDEN_READ))
    return _download(as_csv(pieces, query.table), f"{query.table}.csv", "text/csv; charset=utf-8")


@router.get("/export.jsonl", operation_id="export_gradings_jsonl", response_class=Response)
async def export_gradings_jsonl(request: Request, caller: GradingsRead, state: State, query: Exported) -> Response:
    """As ``export.csv``, one JSON object per line."""
    pieces = rows(*_source(request, caller, state, query), query.table, hidden=caller.may(HIDDEN_READ))
    return _download(as_jsonl(pieces), f"{query.table}.jsonl", "application/jsonl")


def _source(request: Request, caller: Caller, state: ApiState, query: ExportQuery) -> tuple[Database, str, ListFilter]:
    only_known(request, {*ExportQuery.model_fields} - {"sort", "fields", "total"}, ())
    where = ListFilter(
        ids=split_ids(query.ids),
        values={name: getattr(query, name) for name in FILTERS},
        created_after=query.created_after,
        created_before=query.created_before,
    )
    return state.db, caller.project_id, where


def _download(content: AsyncGenerator[bytes], name: str, mime: str) -> Response:
    return StreamingResponse(content, 200, download_headers(name), mime)

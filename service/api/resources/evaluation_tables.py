"""``/v1/evaluations/{id}/tables``: the result tables that reports read, as files, and what their columns mean."""

import asyncio
from typing import BinaryIO

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import Caller, ReportsRead, State
from service.api.downloads import download_headers, file_answer
from service.api.json_body import StrictRoute
from service.api.rendering import View, answer
from service.api.report_slots import report_slot
from service.api.resources.tasks import HIDDEN_READ
from service.api.state import ApiState
from service.domain.errors import NotFound
from service.lifecycle.results.counting_rows import policies_of
from service.lifecycle.results.registry import Format, table_writer
from service.reporting.dictionary import TABLES, Table
from service.store.database import Tx
from service.store.result_tables.reading import QUERIES
from service.store.result_tables.scope import EvaluationHead, Scope, heads

router = APIRouter(prefix="/v1/evaluations", tags=["reports"], route_class=StrictRoute)
_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


class TableColumn(View):
    name: str
    type: str
    """text | integer | number | boolean | time | date | json (a list or map, as JSON text)"""
    text: str
    """What it is, with its unit."""
    null: str | None
    """What null means; null: it is never null."""


class ResultTable(View):
    name: str
    text: str
    """What one row is."""
    key: list[str]
    columns: list[TableColumn]


class ResultTables(View):
    data: list[ResultTable]


def table_view(table: Table) -> ResultTable:
    columns = [TableColumn(name=c.name, type=c.type, text=c.text, null=c.null or None) for c in table.columns]
    return ResultTable(name=table.name, text=table.text, key=[*table.key], columns=columns)


@router.get("/{evaluation_id}/tables", operation_id="list_evaluation_tables", response_model=ResultTables)
async def list_evaluation_tables(evaluation_id: str, caller: ReportsRead, state: State) -> Response:
    """List the tables with their data dictionary; it is the same for every evaluation."""
    async with state.db.reading() as tx:
        await _evaluation(tx, caller, evaluation_id)
    return answer(ResultTables(data=[table_view(TABLES[name]) for name in QUERIES]))


@router.get("/{evaluation_id}/tables/{file}", operation_id="get_evaluation_table", response_class=Response)
async def get_evaluation_table(
    evaluation_id: str, file: str, request: Request, caller: ReportsRead, state: State, controls: bool = False
) -> Response:
    """Download a table, ``<name>.csv``, ``.parquet`` or ``.json``, all of one moment.

    Altered-work controls and runs of preflights are in it with ``controls`` only; what quotes hidden assets needs ``hidden:read``.
    In CSV an unknown value is an empty field, and text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    out = state.blobs.scratch()
    try:
        with report_slot(state):
            format = await _write(state, caller, evaluation_id, file, controls, out)
        size = await asyncio.to_thread(_rewound, out)
    except BaseException:
        out.close()
        raise
    return file_answer(request, out, size, _TYPES[format], download_headers(f"{evaluation_id}-{file}"))


async def _write(
    state: ApiState, caller: Caller, evaluation_id: str, file: str, controls: bool, out: BinaryIO
) -> Format:
    write = await table_writer()
    async with state.db.snapshot() as tx:
        head = await _evaluation(tx, caller, evaluation_id)
        table, _, format = file.rpartition(".")
        if table not in QUERIES or format not in _TYPES:
            raise NotFound("table_not_found", f"tables are {', '.join(QUERIES)}; each as csv, parquet or json")
        laid, hidden = tuple(head.overlays), caller.may(HIDDEN_READ)
        scope = Scope(caller.project_id, (head.id,), controls=controls, hidden=hidden, overlays=laid)
        await write(tx, table, scope, policies_of([head]), format, out)
        return format


async def _evaluation(tx: Tx, caller: Caller, evaluation_id: str) -> EvaluationHead:
    found = await heads(tx, caller.project_id, [evaluation_id])
    if not found:
        raise NotFound("not_found")
    return found[0]


def _rewound(file: BinaryIO) -> int:
    size = file.tell()
    file.seek(0)
    return size

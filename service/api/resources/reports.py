"""``/v1/evaluations/{id}/report`` and ``/v1/reports``: figures over evaluations, as JSON, as a page, as pictures."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, ReportsRead, State
from service.api.downloads import download_headers
from service.api.json_body import StrictRoute
from service.api.rendering import answer
from service.api.report_slots import report_slot
from service.api.state import ApiState
from service.domain.errors import NotFound
from service.domain.leaderboards import Leaderboard
from service.domain.reports import Report, ReportKind, ReportSettings
from service.lifecycle.results.registry import comparer, drawer, leaderboard_maker, page_maker, report_builder
from service.store.result_tables.scope import heads

router = APIRouter(prefix="/v1", tags=["reports"], route_class=StrictRoute)
PAGE_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
}
"""Of the page: what it says came from outside, so it may run nothing and reach nobody."""
_PICTURES = {"svg": "image/svg+xml", "png": "image/png"}
EvaluationId = Annotated[str, Field(min_length=1, max_length=64)]


class ReportRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    evaluations: list[EvaluationId] = Field(min_length=1, max_length=50)
    kind: ReportKind | None = None
    """Null: that of the benchmark's paper, else ``overview``."""
    settings: ReportSettings = Field(default_factory=ReportSettings)


@router.get("/evaluations/{evaluation_id}/report", operation_id="get_report", response_model=Report)
async def get_report(
    evaluation_id: str, request: Request, caller: ReportsRead, state: State, kind: ReportKind | None = None
) -> Response:
    """Return the evaluation's report with the plain settings, as it stands now; with ``Accept: text/html`` one page that opens
    offline. ``kind``: null is that of the benchmark's paper, else ``overview``."""
    return await _answer(request, state, await _report(state, caller, [evaluation_id], kind, ReportSettings()))


@router.post("/evaluations/{evaluation_id}/report", operation_id="make_report", response_model=Report)
async def make_report(
    evaluation_id: str,
    body: ReportSettings,
    request: Request,
    caller: ReportsRead,
    state: State,
    kind: ReportKind | None = None,
) -> Response:
    """As GET, with settings of one's own. Nothing is stored."""
    return await _answer(request, state, await _report(state, caller, [evaluation_id], kind, body))


@router.get("/evaluations/{evaluation_id}/report/plots/{file}", operation_id="get_plot", response_class=Response)
async def get_plot(
    evaluation_id: str, file: str, caller: ReportsRead, state: State, kind: ReportKind | None = None
) -> Response:
    """Return the figure of one of the report's tables, ``<table>.svg`` or ``<table>.png``. 422 ``nothing_to_draw``."""
    report = await _report(state, caller, [evaluation_id], kind, ReportSettings())
    name, _, format = file.rpartition(".")
    table = next((table for table in report.tables if table.name == name), None)
    if table is None or format not in _PICTURES:
        raise NotFound("plot_not_found", "a figure is <table>.svg or <table>.png of a table of the report")
    draw = await drawer("svg" if format == "svg" else "png")
    picture = await asyncio.to_thread(draw, table)
    return Response(picture, 200, download_headers(file), _PICTURES[format])


@router.post("/reports", operation_id="make_joint_report", response_model=Report)
async def make_joint_report(body: ReportRequest, request: Request, caller: ReportsRead, state: State) -> Response:
    """Return one report over several evaluations. Nothing is stored."""
    return await _answer(request, state, await _report(state, caller, body.evaluations, body.kind, body.settings))


@router.post("/reports:compare", operation_id="compare_evaluations", response_model=Report)
async def compare_evaluations(body: ReportRequest, request: Request, caller: ReportsRead, state: State) -> Response:
    """Return the second of two evaluations beside the first, task by task, with paired tests; ``kind`` does not matter."""
    compare = await comparer()
    with report_slot(state):
        return await _answer(
            request, state, await compare(state.db, caller.project_id, body.evaluations, body.settings)
        )


@router.post("/reports:leaderboard", operation_id="make_leaderboard", response_model=Leaderboard)
async def make_leaderboard(body: ReportRequest, caller: ReportsRead, state: State) -> Response:
    """Return the evaluations' agents as a leaderboard in the layout of JobBench's site, ranked by option ``aggregate``
    (``macro``, or ``micro`` as the site does); ``kind`` does not matter. Nothing is stored."""
    make = await leaderboard_maker()
    with report_slot(state):
        return answer(await make(state.db, caller.project_id, body.evaluations, body.settings))


async def _report(
    state: ApiState, caller: Caller, evaluations: list[str], kind: ReportKind | None, settings: ReportSettings
) -> Report:
    async with state.db.reading() as tx:
        if len(await heads(tx, caller.project_id, evaluations)) != len(set(evaluations)):
            raise NotFound("not_found")
    build = await report_builder()
    with report_slot(state):
        return await build(state.db, caller.project_id, evaluations, kind, settings)


async def _answer(request: Request, state: ApiState, report: Report) -> Response:
    if not _wants_page(request):
        return answer(report)
    make = await page_maker()
    with report_slot(state):
        page = await asyncio.to_thread(make, report)
    return Response(page.encode(), 200, PAGE_HEADERS, "text/html; charset=utf-8")


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")

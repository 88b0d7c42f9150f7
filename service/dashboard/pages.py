"""The routes of the pages."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from service.dashboard import display
from service.dashboard.inert import inert
from service.dashboard.markdown import markdown
from service.dashboard.visitor import Visitor, dashboard_of, visitor_of
from service.domain import cursors
from service.domain.agents import Driver
from service.domain.errors import Expected, Invalid
from service.domain.run_states import Phase, StopMode
from service.lifecycle.stop import stop
from service.lifecycle.surfaces import has_screen
from service.store import artifacts, attempts, audit, gradings, integrity, judge_figures, queue_places, reviews, runs
from service.store.database import Tx
from service.store.judge_figures import JudgeSaid
from service.store.rows import RunFilter, RunRow
from service.store.rows_grading import ReviewRow

router = APIRouter(include_in_schema=False)
PER_PAGE = 50
SHOWN_EVENTS = 2000
"""Events before the last one that a run's page asks for; earlier ones are in the API."""
SHOWN_ARTIFACTS = 200
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "private, no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Not no-referrer: under that, browsers send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
}

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {
    "inert": inert,
    "markdown": markdown,
    "size": display.size,
    "duration": display.duration,
    "moment": display.moment,
    "iso": display.iso,
    "words": display.words,
}
_globals = cast("dict[str, Any]", _templates.globals)
_globals |= {name: getattr(display, name) for name in ("state_of", "tone_of", "tone_of_score", "points")}


def page(template: str, status: int = 200, headers: dict[str, str] = HEADERS, **values: Any) -> Response:
    return HTMLResponse(_templates.get_template(template).render(**values), status, headers)


def to_login() -> Response:
    return RedirectResponse("/login", 303, {"Cache-Control": "no-store"})


@router.get("/login")
async def login_page(failed: str | None = None) -> Response:
    return page("login.html", failed=failed is not None)


@router.get("/")
async def run_list(request: Request, phase: str = "", cursor: str = "") -> Response:
    """List the newest runs, by phase if wanted."""
    visitor = await visitor_of(request, "runs:read")
    if visitor is None:
        return to_login()
    phases = [p.value for p in Phase]
    try:
        if phase and phase not in phases:
            raise Invalid("unknown_phase", "there is no such phase")
        position = cursors.decode(cursor, f"pages:{phase}") if cursor else None
    except Invalid as error:
        return page("problem.html", error.status, title="That link does not work", detail=error.detail)
    wanted = RunFilter(phase=(phase,) if phase else ())
    async with dashboard_of(request).db.reading() as tx:
        found = await runs.list(tx, visitor.project_id, wanted, "-created_at", position, PER_PAGE)
        counts = await runs.counts_by_phase(tx, visitor.project_id)
        holds = await _holds(tx, found.items)
    following = cursors.encode(found.next, f"pages:{phase}") if found.next else None
    return page(
        "runs.html", runs=found.items, holds=holds, counts=counts, phase=phase, phases=phases, following=following
    )


@router.get("/runs/{run_id}")
async def run_page(request: Request, run_id: str) -> Response:
    """Show one run: where it is, what it prints, what it delivered, how that was judged."""
    visitor = await visitor_of(request, "runs:read")
    if visitor is None:
        return to_login()
    async with dashboard_of(request).db.reading() as tx:
        run = await runs.get(tx, visitor.project_id, run_id)
        if run is None:
            return page("problem.html", 404, title="No such run", detail="It may have been deleted.")
        values = await _of_run(tx, run, visitor)
    return page("run.html", **values)


@router.post("/runs/{run_id}/stop")
async def stop_run(request: Request, run_id: str) -> Response:
    """Stop a run and grade what is there; back to its page."""
    visitor = await visitor_of(request, "runs:write")
    if visitor is None:
        return to_login()
    try:
        async with dashboard_of(request).db.transaction() as tx:
            await stop(tx, visitor.project_id, run_id, StopMode.COLLECT)
            await audit.record(tx, visitor.project_id, "session", "run.stop", run_id, {"mode": StopMode.COLLECT})
    except Expected as error:
        return page("problem.html", error.status, title="The run could not be stopped", detail=error.detail)
    return RedirectResponse(f"/runs/{run_id}", 303)


async def _holds(tx: Tx, rows: Sequence[RunRow]) -> dict[str, dict[str, Any]]:
    """Return why runs are not at work: what is stored of the held ones, what is so now of the queued ones."""
    queued = await queue_places.holds_of(tx, [row.id for row in rows if row.phase is Phase.QUEUED])
    return {row.id: row.hold for row in rows if row.hold is not None} | queued


def _by_grading(rows: Iterable[ReviewRow | JudgeSaid]) -> dict[str, list[ReviewRow | JudgeSaid]]:
    found: dict[str, list[ReviewRow | JudgeSaid]] = {}
    for row in rows:
        found.setdefault(row.grading_id, []).append(row)
    return found


async def _of_run(tx: Tx, run: RunRow, visitor: Visitor) -> dict[str, Any]:
    entries = await artifacts.list(tx, run.id, 0, SHOWN_ARTIFACTS)
    graded = await gradings.list_for_run(tx, run.id) if visitor.may("gradings:read") else []
    ids = [row.id for row in graded]
    checked = await integrity.find(tx, run.project_id, run.deliverable_digest) if run.deliverable_digest else None
    return {
        "run": run,
        "hold": (await _holds(tx, [run])).get(run.id),
        "live": run.phase is not Phase.DONE,
        "after": max(run.last_seq - SHOWN_EVENTS, 0),
        "attempts": await attempts.list_for_run(tx, run.id),
        "artifacts": entries.items,
        "more_artifacts": entries.next is not None,
        "checked": checked,
        "integrity": checked.report.by_path() if checked and checked.report else {},
        "gradings": sorted(graded, key=lambda row: row.plan == run.plan),
        "reviews": _by_grading(await reviews.standing(tx, ids)),
        "judges": _by_grading(await judge_figures.panels(tx, ids)),
        "may_stop": visitor.may("runs:write") and run.phase is not Phase.DONE,
        "screen": await has_screen(tx, run),
        "may_work": visitor.may("runs:drive") and run.driver is Driver.PERSON,
    }

"""The pages with a run's screen: watch it live; do a person's assignment on it.

The viewer is noVNC, put below ``static/vendor`` at set-up (``tools/browser_code.sh``); without it the pages say so.
"""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from service.dashboard.pages import HEADERS, SHOWN_EVENTS, page, to_login
from service.dashboard.visitor import Visitor, dashboard_of, visitor_of
from service.domain.agents import Driver
from service.domain.errors import NotFound
from service.domain.run_states import Phase
from service.lifecycle.surfaces import has_screen
from service.store import leases, pauses, runs, tasks
from service.store.database import Tx
from service.store.rows import RunRow

router = APIRouter(include_in_schema=False)
VIEWER = Path(__file__).parent / "static" / "vendor" / "novnc" / "core" / "rfb.js"
_WITH_PICTURES = HEADERS | {
    # Pictures of a screen, and its pointer, are data: URLs that the viewer makes.
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("img-src 'self'", "img-src 'self' data:"),
}


@router.get("/runs/{run_id}/screen")
async def screen_page(request: Request, run_id: str) -> Response:
    """Show the screen of a run as it is now, and what is done on it."""
    visitor = await visitor_of(request, "runs:read")
    if visitor is None:
        return to_login()
    async with dashboard_of(request).db.reading() as tx:
        run = await _run(tx, visitor, run_id)
        if run is None:
            return _none()
        values = await _values(tx, run)
    return page("screen.html", headers=_WITH_PICTURES, **values)


@router.get("/runs/{run_id}/work")
async def work_page(request: Request, run_id: str) -> Response:
    """Show a person's assignment with the screen that it is done on."""
    visitor = await visitor_of(request, "runs:drive")
    if visitor is None:
        return to_login()
    async with dashboard_of(request).db.reading() as tx:
        run = await _run(tx, visitor, run_id)
        if run is None:
            return _none()
        if run.driver is not Driver.PERSON:
            return RedirectResponse(f"/runs/{run_id}/screen", 303, {"Cache-Control": "no-store"})
        values = await _values(tx, run) | await _assignment(tx, visitor, run)
    return page("work.html", headers=_WITH_PICTURES, **values)


async def _run(tx: Tx, visitor: Visitor, run_id: str) -> RunRow | None:
    """Return the run if it is there and has a screen."""
    run = await runs.get(tx, visitor.project_id, run_id)
    try:
        return run if run is not None and await has_screen(tx, run) else None
    except NotFound:
        return None


def _none() -> Response:
    return page("problem.html", 404, title="No such screen", detail="The run has none, or it may have been deleted.")


async def _values(tx: Tx, run: RunRow) -> dict[str, Any]:
    clock = await pauses.standing(tx, run.id, run.attempt)
    return {
        "run": run,
        "live": run.phase is not Phase.DONE,
        "after": max(run.last_seq - SHOWN_EVENTS, 0),
        "viewer": VIEWER.is_file(),
        "left_s": max(0.0, clock.left_s) if run.deadline_at else None,
        "paused": run.phase is Phase.PAUSED,
    }


async def _assignment(tx: Tx, visitor: Visitor, run: RunRow) -> dict[str, Any]:
    task = await tasks.get(tx, run.project_id, run.task_id)
    return {
        "task": None if task is None else task.manifest,
        "lease": await leases.standing(tx, run.id),
        "may_fetch": visitor.may("tasks:read"),
    }

"""Server-rendered pages: login, runs, a run, its screen, a person's work, evaluations, campaigns, raters'. Put onto the API's application by wiring."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from service.dashboard import lead, pages, rating, results, screens
from service.dashboard.visitor import Dashboard

STATIC = Path(__file__).parent / "static"


def install(app: FastAPI, dashboard: Dashboard) -> None:
    """Add the pages to ``app``."""
    app.state.dashboard = dashboard
    app.include_router(pages.router)
    app.include_router(screens.router)
    app.include_router(lead.router)
    app.include_router(results.router)
    if dashboard.rating is not None:
        app.include_router(rating.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

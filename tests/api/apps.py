"""Apps whose routes are worked out once in a process: FastAPI does it anew for each app, 0.2 s at its first requests."""

from functools import cache

from fastapi import FastAPI

from service.api.app import create_app, describe
from service.api.state import ApiState


@cache
def _described() -> FastAPI:
    return describe()


def app_of(state: ApiState) -> FastAPI:
    """Return the API on ``state``; what a test adds to it stays its own."""
    app = create_app(state)
    app.router.routes = list(_described().router.routes)
    return app

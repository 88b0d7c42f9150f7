"""The one answer that is asked for all the time, "the run has not changed", given before any routing."""

import re

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.problems import expected_problem
from service.api.state import ApiState
from service.api.waiting import unchanged
from service.domain.errors import Expected

_RUN = re.compile(r"/v1/runs/([A-Za-z0-9_]{1,64})\Z", re.ASCII)
_NEEDED = frozenset({b"if-none-match", b"authorization"})


class _Route:
    path = "/v1/runs/{run_id}"
    """For the metrics, which the router tells this otherwise."""


class Shortcut:
    """ASGI middleware: a conditional GET of a run is answered here if its answer is 304; all else goes on."""

    def __init__(self, app: ASGIApp, state: ApiState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _RUN.match(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if match is None or scope["query_string"] or not {name for name, _ in scope["headers"]} >= _NEEDED:
            await self._app(scope, receive, send)
            return
        try:
            answer = await unchanged(Request(scope), self._state, match[1])
        except Expected as error:  # what is raised here is outside of the handlers of the routes
            answer = expected_problem(error)
        if answer is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = _Route
        await answer(scope, receive, send)

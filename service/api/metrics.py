"""Counters of the API process, one registry per app."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.state import ApiState

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """ASGI middleware: requests by method, route and status, and the time to the answer's start."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, state: ApiState) -> None:
        self._app = app
        names = ("method", "route", "status")
        self._requests = Counter("workstead_http_requests", "Requests answered.", names, registry=registry)
        self._seconds = Histogram(
            "workstead_http_seconds", "Seconds to the answer's start.", ("route",), registry=registry, buckets=_SECONDS
        )
        streams = Gauge("workstead_open_streams", "Open event streams and long polls.", registry=registry)
        streams.set_function(lambda: state.open_streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"], time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, counted)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        # The template, never the path: labels are bounded.
        route = getattr(scope.get("route"), "path", "none")
        self._requests.labels(scope["method"][:8], route, status).inc()
        self._seconds.labels(route).observe(seconds)

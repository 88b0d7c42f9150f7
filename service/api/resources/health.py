"""``/healthz`` (the process answers), ``/readyz`` (the database answers too), ``/metrics`` (Prometheus text)."""

import asyncio

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.responses import Response

from service.api.auth import State
from service.api.rendering import View, json_answer
from service.domain.errors import Unavailable
from service.store.poll import ping

router = APIRouter(tags=["health"])
READY_S = 2.0


class Health(View):
    status: str


@router.get("/healthz", operation_id="healthz", response_model=Health)
async def healthz() -> Response:
    return json_answer(b'{"status":"ok"}', headers={"Cache-Control": "no-store"})


@router.get("/readyz", operation_id="readyz", response_model=Health)
async def readyz(state: State) -> Response:
    try:
        async with asyncio.timeout(READY_S), state.db.reading() as tx:
            await ping(tx)
    except TimeoutError as error:
        raise Unavailable("database_unavailable", "the database does not answer in time") from error
    return json_answer(b'{"status":"ok"}', headers={"Cache-Control": "no-store"})


@router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    registry: object = request.app.state.metrics
    assert isinstance(registry, CollectorRegistry)
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

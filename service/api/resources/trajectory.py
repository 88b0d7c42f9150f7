"""``/v1/runs/{id}/trajectory``: what the agent did, as other tools read it (ATIF 1.7)."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from service.api.auth import RunsRead, State
from service.api.json_body import StrictRoute
from service.api.state import ApiState
from service.domain.errors import NotFound
from service.domain.events import Event
from service.domain.trajectory import TYPES, About, atif
from service.store import agents, attempts, events, runs, tasks
from service.store.database import Tx
from service.store.rows import RunRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)
PAGE = 2000
MOST_BLOB_BYTES = 16 << 20


@router.get(
    "/{run_id}/trajectory",
    operation_id="get_trajectory",
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "ATIF 1.7"}},
)
async def get_trajectory(
    run_id: str, caller: RunsRead, state: State, attempt: Annotated[int | None, Query(ge=1, le=1000)] = None
) -> Response:
    """Return the trajectory of the latest attempt, or of another one, as far as it has come."""
    async with state.db.reading() as tx:
        run = await runs.get(tx, caller.project_id, run_id)
        if run is None:
            raise NotFound("not_found")
        about = await _about(tx, run, attempt or run.attempt)
    found = await _events(state, run_id)
    return JSONResponse(await asyncio.to_thread(atif, about, found), headers={"Cache-Control": "private, no-cache"})


async def _about(tx: Tx, run: RunRow, attempt: int) -> About:
    agent = await agents.get(tx, run.project_id, run.agent_id)
    task = await tasks.get(tx, run.project_id, run.task_id)
    row = await attempts.get(tx, run.id, attempt)
    if agent is None or task is None or (row is None and attempt != run.attempt):
        raise NotFound("not_found")
    provenance: Mapping[str, Any] = {} if row is None else row.provenance
    name, _, version = agent.spec.scaffold.rpartition("@")
    return About(
        run_id=run.id,
        attempt=attempt,
        agent_name=name,
        agent_version=version,
        model_name=agent.spec.model,
        effort=provenance.get("effort"),
        instruction=task.manifest.instruction,
        created_at=run.created_at,
        extra={"task": run.task_name, "task_digest": run.task_digest, "agent": run.agent_label, "sample": run.sample},
    )


async def _events(state: ApiState, run_id: str) -> list[Event]:
    found: list[Event] = []
    after = 0
    while True:
        async with state.db.reading() as tx:
            page = await events.read(tx, run_id, after, PAGE, [t.value for t in TYPES])
        found += [await asyncio.to_thread(_whole, state, event) for event in page]
        if len(page) < PAGE:
            return found
        after = page[-1].seq


def _whole(state: ApiState, event: Event) -> Event:
    """Return the event with the payload that was too large for its row."""
    digest = event.payload.get("payload_blob")
    if not isinstance(digest, str) or int(event.payload.get("payload_bytes") or 0) > MOST_BLOB_BYTES:
        return event
    try:
        value: Any = json.loads(state.blobs.path(digest).read_bytes())
    except (OSError, ValueError):
        return event
    return replace(event, payload=cast("dict[str, Any]", value)) if isinstance(value, dict) else event

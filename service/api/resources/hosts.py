"""``/v1/hosts``: where sandboxes run, what is left there, and why a host takes no run. For operators (NEEDS B27)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, State
from service.api.json_body import StrictRoute
from service.api.operators import Operator
from service.api.rendering import Timestamp, View, answer, now
from service.api.state import ApiState
from service.domain.errors import Conflict, NotFound
from service.domain.placement import Capacity, obstacles
from service.domain.tasks import LABELS
from service.store import audit, capacity, hosts, queue_places
from service.store.database import Tx
from service.store.rows import HostRow

router = APIRouter(prefix="/v1/hosts", tags=["hosts"], route_class=StrictRoute)


class Memory(View):
    """Null where the host did not say."""

    total_bytes: int | None
    usable_bytes: int | None
    """What runs may be promised in all."""
    promised_bytes: int
    """Limits of the runs that are live."""


class Disk(View):
    """Of the disk that is nearest to its watermark. Null where the host did not say."""

    free_bytes: int | None
    total_bytes: int | None
    watermark_bytes: int | None
    """With less than this free, no run is taken."""
    promised_bytes: int
    """Quotas of the runs that are live."""


class Obstacle(View):
    reason: str
    """lost | draining | cordoned | waiting_for_slot | waiting_for_disk | waiting_for_memory | image_missing"""
    detail: str


class Host(View):
    id: str
    state: str
    """up | draining | lost"""
    cordoned: bool
    """Takes no new run."""
    slots: int
    slots_limit: int | None
    """An operator's lower limit."""
    used: int
    """Slots that runs have."""
    runtimes: list[str]
    environments: list[str]
    """Names and image ids."""
    labels: dict[str, str]
    version: str | None
    cpus: int | None
    memory: Memory
    disk: Disk
    heartbeat_at: Timestamp | None
    heartbeat_age_s: float | None
    reasons: list[Obstacle]
    """What keeps it from taking a run just now."""


class HostList(View):
    data: list[Host]


class HostChange(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cordoned: bool = False
    slots_limit: int | None = Field(default=None, ge=0, le=512)
    """Null takes the limit away."""
    labels: LABELS = Field(default_factory=dict[str, str])


class DrainRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    stop_worker: bool = False
    """End the worker process once its last run is released. Who restarts it gets a host that is still cordoned."""


def _view(row: HostRow, room: Capacity, needed: Mapping[str, int]) -> Host:
    facts = row.facts
    return Host(
        id=row.id,
        state=row.state,
        cordoned=row.cordoned,
        slots=row.slots,
        slots_limit=row.slots_limit,
        used=room.running,
        runtimes=list(row.runtimes),
        environments=list(row.environments),
        labels=row.labels,
        version=facts.get("version"),
        cpus=facts.get("cpus"),
        memory=Memory(
            total_bytes=facts.get("memory_total_bytes"),
            usable_bytes=room.memory_usable_bytes,
            promised_bytes=room.memory_promised_bytes,
        ),
        disk=Disk(
            free_bytes=room.disk_free_bytes,
            total_bytes=room.disk_total_bytes,
            watermark_bytes=facts.get("disk_watermark_bytes"),
            promised_bytes=room.disk_promised_bytes,
        ),
        heartbeat_at=row.beat_at,
        heartbeat_age_s=_age(row.beat_at),
        reasons=[Obstacle(reason=reason, detail=detail) for reason, detail in obstacles(room, needed)],
    )


def _age(since: datetime | None) -> float | None:
    return None if since is None else round(max((now() - since).total_seconds(), 0.0), 3)


async def _load(tx: Tx, host_id: str) -> Host:
    row, room = await hosts.get(tx, host_id), await capacity.of_host(tx, host_id)
    if row is None or room is None:
        raise NotFound("not_found")
    return _view(row, room, await queue_places.images_needed(tx))


@router.get("", operation_id="list_hosts", response_model=HostList)
async def list_hosts(_caller: Operator, state: State) -> Response:
    """List all hosts by id, at most 500."""
    async with state.db.reading() as tx:
        rows = {row.id: row for row in await hosts.list(tx)}
        rooms = await capacity.of_all(tx)
        needed = await queue_places.images_needed(tx)
    return answer(HostList(data=[_view(rows[r.host_id], r, needed) for r in rooms if r.host_id in rows]))


@router.get("/{host_id}", operation_id="get_host", response_model=Host)
async def get_host(host_id: str, _caller: Operator, state: State) -> Response:
    async with state.db.reading() as tx:
        return answer(await _load(tx, host_id))


@router.patch("/{host_id}", operation_id="change_host", response_model=Host)
async def change_host(host_id: str, body: HostChange, caller: Operator, state: State) -> Response:
    """Cordon, limit or label a host. Claims heed it at once; runs that are live go on."""
    columns = body.model_dump(exclude_unset=True)
    return await _change(state, caller, host_id, "host.change", columns)


@router.post("/{host_id}/drain", operation_id="drain_host", response_model=Host)
async def drain_host(host_id: str, body: DrainRequest, caller: Operator, state: State) -> Response:
    """Cordon a host and, if wanted, end its worker when the last run is released. Uncordoning takes both back."""
    columns: dict[str, Any] = {"cordoned": True} | ({"state": "draining"} if body.stop_worker else {})
    return await _change(state, caller, host_id, "host.drain", columns)


async def _change(state: ApiState, caller: Caller, host_id: str, action: str, columns: dict[str, Any]) -> Response:
    async with state.db.transaction() as tx:
        before = await hosts.get(tx, host_id)
        if before is None:
            raise NotFound("not_found")
        if before.state == "lost" and columns.get("state") == "draining":
            raise Conflict("host_lost", "the host's worker is not there: nothing is left to drain")
        if before.state == "draining" and columns.get("cordoned") is False:
            columns = columns | {"state": "up"}
        if columns:
            await hosts.change(tx, host_id, **columns)
            await audit.record(tx, caller.project_id, caller.token.id, action, host_id, columns)
        return answer(await _load(tx, host_id))

"""``/v1/runs/{id}/desktop/view`` and ``…/control`` (WebSockets, RFB): watch a run's screen; act on it as its person.

Sub-protocol ``binary``. What a viewer sends is filtered here: who only watches cannot type or point, whatever its program
does. An agent's screen is never taken over: control is for runs whose driver is ``person``, by the holder of the lease.
"""

import asyncio
import contextlib
from collections.abc import Generator
from typing import Annotated

from fastapi import APIRouter, WebSocket
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, RunsRead, State
from service.api.bridge import BridgeTerminal, WorkerAway
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.problems import expected_problem
from service.api.rendering import answer
from service.api.resources.leases import HEADER, Secret
from service.api.resources.tickets import Ticket, check_origin
from service.api.screens import screen_of
from service.api.socket_callers import Entrance, enter
from service.api.state import ApiState, api_state
from service.api.stream_slots import check_slot, slot
from service.api.viewing import Viewing
from service.domain.agents import Driver
from service.domain.errors import Conflict, Expected, RateLimited, Unavailable
from service.domain.ids import new_id
from service.domain.run_states import AttemptState
from service.store import attempts, audit, hosts, leases, tickets
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.rows import AttemptRow, HostRow, RunRow
from service.store.rows_leases import LeaseRow

router = APIRouter(prefix="/v1/runs", tags=["driving"], route_class=StrictRoute)
MOST_OF_RUN = 8
MOST = 64
"""Most live views at once in this process."""
_BINARY = "binary"


class ViewRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    control: bool = False
    """Act on the screen too: needs ``runs:drive``, the lease of the run, and a run whose driver is ``person``."""
    origin: Annotated[str, Field(max_length=300)] | None = None
    """Origin of the page that will use it; null: our own pages, or no browser."""


@router.post("/{run_id}/desktop/ticket", operation_id="create_view_ticket", response_model=Ticket, status_code=201)
async def create_view_ticket(
    run_id: str, body: ViewRequest, caller: RunsRead, state: State, secret: Secret
) -> Response:
    """Make a ticket for the WebSocket that shows the run's screen (``path``): one connection within 60 s.

    409 ``no_screen``, ``run_not_ready``; with ``control`` also ``not_person``, ``lease_lost``.
    """
    check_origin(body.origin, state.config)
    path = f"/v1/runs/{run_id}/desktop/{'control' if body.control else 'view'}"
    async with state.db.transaction() as tx:
        run = await run_or_404(tx, caller, run_id)
        await _shown(tx, run)
        if body.control:
            _check_person(caller, run)
            await leases.hold(tx, run_id, secret)
        ticket, expires_at = await tickets.mint(tx, caller.token, path, body.origin)
    return answer(Ticket(ticket=ticket, path=path, expires_at=expires_at), 201, {"Cache-Control": "no-store"})


@router.websocket("/{run_id}/desktop/view")
async def view_screen(websocket: WebSocket, run_id: str) -> None:
    """Needs ``runs:read``: by bearer token, ticket, or the session of our own pages."""
    await _open(websocket, run_id, control=False)


@router.websocket("/{run_id}/desktop/control")
async def control_screen(websocket: WebSocket, run_id: str) -> None:
    """Needs ``runs:drive`` and the lease: by ticket, or by bearer token and header ``Workstead-Lease``."""
    await _open(websocket, run_id, control=True)


async def _open(websocket: WebSocket, run_id: str, *, control: bool) -> None:
    state = api_state(websocket)
    try:
        entrance = await enter(websocket, state, cookies=not control)
        entrance.caller.require("runs:drive" if control else "runs:read")
        check_slot(state, entrance.caller.token.id)
        with slot(state, entrance.caller.token.id), _place(state, run_id):
            await _view(websocket, state, entrance, run_id, control=control)
    except Expected as error:
        await websocket.send_denial_response(expected_problem(error))


@contextlib.contextmanager
def _place(state: ApiState, run_id: str) -> Generator[None]:
    viewers = state.bridge.viewers
    if viewers[run_id] >= MOST_OF_RUN or viewers.total() >= MOST:
        detail = f"at most {MOST_OF_RUN} live views of a run and {MOST} of all"
        raise RateLimited("too_many_viewers", detail, headers={"Retry-After": "5"})
    viewers[run_id] += 1
    try:
        yield
    finally:
        viewers[run_id] -= 1
        if not viewers[run_id]:
            del viewers[run_id]


async def _view(websocket: WebSocket, state: ApiState, entrance: Entrance, run_id: str, *, control: bool) -> None:
    """Raises Expected before the socket is accepted."""
    viewing, stream = await _begun(websocket, state, entrance, run_id, control=control)
    try:
        wanted: list[str] = websocket.scope.get("subprotocols", [])
        await websocket.accept(_BINARY if _BINARY in wanted else None)
        await viewing.serve(websocket, stream)
    finally:
        stream.close()
        await asyncio.shield(_ended(viewing))


async def _begun(
    websocket: WebSocket, state: ApiState, entrance: Entrance, run_id: str, *, control: bool
) -> tuple[Viewing, BridgeTerminal]:
    caller = entrance.caller
    async with state.db.transaction() as tx:
        run = await run_or_404(tx, caller, run_id)
        attempt, host = await _shown(tx, run)
        lease = await _lease(tx, websocket, entrance, run) if control else None
        viewing = Viewing(state, caller, run_id, attempt.n, new_id("view"), lease)
        await lock_run(tx, run_id)
        await viewing.say(tx, "opened")
        if control:
            await audit.record(tx, caller.project_id, caller.token.id, "run.control", run_id, {"attempt": attempt.n})
    place = "" if host is None else str(host.facts.get("bridge", ""))
    head = {"run": run_id, "attempt": attempt.n, "fence": attempt.fence}
    try:
        return viewing, await state.bridge.open_terminal(place, head, "vnc")
    except WorkerAway as error:
        await _ended(viewing)
        raise Unavailable("worker_away", "the run's worker does not answer") from error


async def _ended(viewing: Viewing) -> None:
    """The last input, and that the viewer went: if the run is there still, and its attempt goes on."""
    with contextlib.suppress(Expected):
        await viewing.note()
        async with viewing.state.db.transaction() as tx:
            await lock_run(tx, viewing.run_id)
            await viewing.say(tx, "closed")


async def _shown(tx: Tx, run: RunRow) -> tuple[AttemptRow, HostRow | None]:
    await screen_of(tx, run)
    attempt = await attempts.get(tx, run.id, run.attempt)
    if attempt is None or attempt.state is not AttemptState.RUNNING:
        raise Conflict("run_not_ready", f"the run is {run.phase}; its screen can be seen while it is running")
    return attempt, await hosts.get(tx, attempt.host_id)


def _check_person(caller: Caller, run: RunRow) -> None:
    caller.require("runs:drive")
    if run.driver is not Driver.PERSON:
        raise Conflict("not_person", f"the run is driven by its {run.driver}: its screen can be watched only")


async def _lease(tx: Tx, websocket: WebSocket, entrance: Entrance, run: RunRow) -> LeaseRow:
    """Return the lease that is the caller's: by its secret, or the one that stood when the ticket was made for it."""
    _check_person(entrance.caller, run)
    if entrance.ticket is None:
        return (await leases.hold(tx, run.id, websocket.headers.get(HEADER, "")))[0]
    lease = await leases.standing(tx, run.id)
    if lease is None or lease.created_at > entrance.ticket.made_at:
        raise Conflict("lease_lost", "the lease is not (any more) yours: claim the run again while it is running")
    return lease

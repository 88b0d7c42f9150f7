"""``/v1/runs/{id}/pause`` and ``/resume``: the clock of a person at work stands still, and so does everything in the sandbox."""

from fastapi import APIRouter
from starlette.responses import Response

from service.api.auth import Caller, State, TokenCaller
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import answer
from service.api.resources.leases import Secret
from service.api.run_view import Run, run_view
from service.store import audit, leases, pauses
from service.store.database import Tx

router = APIRouter(prefix="/v1/runs", tags=["driving"], route_class=StrictRoute)


@router.post("/{run_id}/pause", operation_id="pause_run", response_model=Run)
async def pause_run(run_id: str, caller: TokenCaller, state: State, secret: Secret) -> Response:
    """Freeze a run whose driver is ``person``; its deadline moves by the pause. Needs its lease, or ``runs:write``.

    At most 100 times an attempt, and 72 h of them in all; then the clock goes on by itself. May be repeated. 409
    ``not_person``, ``run_not_running``, ``too_many_pauses``, ``lease_lost``.
    """
    async with state.db.transaction() as tx:
        await _may(tx, caller, run_id, secret)
        await pauses.begin(tx, run_id)
        await audit.record(tx, caller.project_id, caller.token.id, "run.pause", run_id, {})
        row = await run_or_404(tx, caller, run_id)
    return answer(run_view(row))


@router.post("/{run_id}/resume", operation_id="resume_run", response_model=Run)
async def resume_run(run_id: str, caller: TokenCaller, state: State, secret: Secret) -> Response:
    """Let a paused run go on; one that is not paused is returned as it is. Needs its lease, or ``runs:write``."""
    async with state.db.transaction() as tx:
        await _may(tx, caller, run_id, secret)
        await pauses.end(tx, run_id)
        await audit.record(tx, caller.project_id, caller.token.id, "run.resume", run_id, {})
        row = await run_or_404(tx, caller, run_id)
    return answer(run_view(row))


async def _may(tx: Tx, caller: Caller, run_id: str, secret: str) -> None:
    """Raises NotFound, Forbidden, Conflict ``lease_lost``."""
    await run_or_404(tx, caller, run_id)
    if caller.may("runs:write"):
        return
    caller.require("runs:drive")
    await leases.hold(tx, run_id, secret)

"""Runs with a screen: what they drive, and a look at it that nobody's work notices."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from service.api.auth import Caller
from service.api.bridge import WorkerAway
from service.api.driving import not_paused
from service.api.lookups import run_or_404
from service.api.state import ApiState
from service.domain.agents import SCREENS, ScaffoldManifest, Surface
from service.domain.desktop import Batch, Shot
from service.domain.errors import Conflict, RateLimited, Unavailable
from service.domain.ids import new_id
from service.domain.run_states import AttemptState
from service.lifecycle.bridge_frames import Frame
from service.lifecycle.surfaces import surface_of_run
from service.store import attempts, hosts
from service.store.database import Tx
from service.store.rows import RunRow

CALL = "desktop"
"""The bridge's call."""
LOOK_S = 60.0


@dataclass(frozen=True, slots=True)
class Screened:
    """A run that has a screen."""

    run: RunRow
    surface: Surface
    manifest: ScaffoldManifest


async def screen_of(tx: Tx, run: RunRow) -> Screened:
    """Raises Conflict ``no_screen``."""
    surface, manifest = await surface_of_run(tx, run)
    if surface not in SCREENS:
        raise Conflict("no_screen", f"the run's surface is {surface.value}: it has no screen")
    return Screened(run, surface, manifest)


async def look(state: ApiState, caller: Caller, run_id: str, shot: Shot) -> Frame:
    """Ask for a picture of the screen, once, and leave no trace in the run's log.

    One at a time and run, so that whoever watches cannot keep the driver waiting. Raises NotFound, Conflict ``no_screen``,
    ``run_not_ready``, ``run_paused``, RateLimited ``busy``, Unavailable ``worker_away``.
    """
    with _alone(state, run_id):
        place, head = await _named(state, caller, run_id)
        batch = Batch(shot=shot).model_dump(mode="json")
        try:
            return await state.bridge.call(
                place,
                {**head, "call": CALL, "call_id": new_id("look"), "batch": batch, "before": False},
                seconds=LOOK_S,
            )
        except WorkerAway as error:
            raise Unavailable("worker_away", "the run's worker does not answer") from error


async def _named(state: ApiState, caller: Caller, run_id: str) -> tuple[str, dict[str, Any]]:
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        await screen_of(tx, run)
        not_paused(run)
        attempt = await attempts.get(tx, run_id, run.attempt)
        if attempt is None or attempt.state is not AttemptState.RUNNING:
            raise Conflict("run_not_ready", f"the run is {run.phase}; its screen can be seen while it is running")
        host = await hosts.get(tx, attempt.host_id)
    place = "" if host is None else str(host.facts.get("bridge", ""))
    return place, {"run": run_id, "attempt": attempt.n, "fence": attempt.fence}


@contextlib.contextmanager
def _alone(state: ApiState, run_id: str) -> Generator[None]:
    looked_at = state.bridge.looked_at
    if run_id in looked_at:
        raise RateLimited("busy", "somebody looks at this screen just now", headers={"Retry-After": "1"})
    looked_at.add(run_id)
    try:
        yield
    finally:
        looked_at.discard(run_id)

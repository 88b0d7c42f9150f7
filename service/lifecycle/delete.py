"""Deletes an ended run with everything that belongs to it. Called by the API."""

from service.domain.errors import Conflict, NotFound
from service.domain.run_states import TERMINAL_ATTEMPTS
from service.store import attempts, runs
from service.store.database import Tx
from service.store.fences import lock_run


async def delete_run(tx: Tx, project_id: str, run_id: str) -> None:
    """Delete the run; its blobs go with the next collection of what nobody needs.

    Raises NotFound, Conflict ``run_not_ended`` (also while its sandbox is being removed, for seconds after the end).
    """
    if await runs.get(tx, project_id, run_id) is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    await lock_run(tx, run_id)
    if any(a.state not in TERMINAL_ATTEMPTS for a in await attempts.list_for_run(tx, run_id)):
        raise Conflict("run_not_ended", "the run has not ended, or its sandbox is still being removed")
    await runs.delete(tx, run_id)

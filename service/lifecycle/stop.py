"""Stops a run in any phase. Called by the API; a worker's ``drive`` does the rest.

=============  =======================================================================================================
queued, held   every mode: done, cancelled, at once (there is nothing to finish or to collect)
live           a flag and a notification; finish brings the deadline nearer, collect and discard kill
collecting,    discard: done, cancelled; open gradings end as ``failed``, cause ``cancelled``; the other modes change
grading        nothing, for the agent has ended already
done           nothing, whatever the mode
=============  =======================================================================================================
"""

from service.domain.errors import NotFound
from service.domain.run_states import Outcome, Phase, StopMode
from service.domain.verdicts import VerdictState
from service.lifecycle.sealing import close_gradings
from service.store import runs
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.rows import RunRow

_AGENT_HAS_ENDED = frozenset({Phase.COLLECTING, Phase.GRADING, Phase.DONE})


async def stop(tx: Tx, project_id: str, run_id: str, mode: StopMode) -> RunRow:
    """Ask for the end of a run and return it as it then is. Idempotent. Raises NotFound."""
    run = await runs.get(tx, project_id, run_id)
    if run is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    await lock_run(tx, run_id)
    run = await runs.load(tx, run_id)
    if run.phase in _AGENT_HAS_ENDED and mode is not StopMode.DISCARD:
        return run
    run = await runs.request_stop(tx, run_id, mode)
    if run.phase is not Phase.GRADING:
        return run
    await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.CANCELLED)
    await runs.update(tx, run_id, verdict_state=VerdictState.FAILED)
    await close_gradings(tx, run_id, "cancelled")
    return await runs.load(tx, run_id)

"""A draft is started: after its preflight, or at once. Its runs are made together, in the order in which they are to begin."""

from collections import Counter
from collections.abc import Iterable, Sequence

from service.domain.agents import Driver
from service.domain.errors import NotFound
from service.domain.evaluation_plans import Slot, slots
from service.domain.evaluations import EvaluationState
from service.domain.run_states import Phase
from service.lifecycle.evaluations.fitting import Templates, run_of
from service.lifecycle.evaluations.recalling import check_state, recall
from service.lifecycle.evaluations.replaying import recordings
from service.lifecycle.uploads import AWAITING_UPLOAD
from service.store import clock as database_clock
from service.store import operations, run_batches
from service.store.database import Tx
from service.store.evaluations import evaluations, members
from service.store.rows import NewRun
from service.store.rows_evaluations import EvaluationRow

PREFLIGHT = "preflight"
"""Kind of the operation."""
Wanted = Iterable[tuple[Slot, str | None]]
"""A place, and the run that was in it before."""


async def begin(tx: Tx, row: EvaluationRow, actor: str, *, skip_preflight: bool) -> EvaluationRow:
    """Start a draft, or have it checked first. The caller has taken its turn and read ``row`` after that.

    Raises Conflict ``evaluation_state``, ``evaluation_outdated``, ``recording_gone``.
    """
    check_state(row, {EvaluationState.DRAFT})
    if skip_preflight or row.spec.replay_of is not None:  # a replay asks nobody
        return await start(tx, row.id, actor, preflight_skipped=True)
    asked = {"evaluation_id": row.id, "actor": actor}
    operation = await operations.create(tx, row.project_id, PREFLIGHT, asked, "checks")
    await evaluations.note(tx, row.id, actor, "preflight", {"operation_id": operation.id})
    preflight = {"operation_id": operation.id}
    return await evaluations.change(tx, row.id, state=EvaluationState.CHECKING, preflight=preflight)


async def start(tx: Tx, evaluation_id: str, actor: str, *, preflight_skipped: bool = False) -> EvaluationRow:
    """Make all runs and let them begin; one that has begun is returned as it is. ``actor``: token, or process.

    Raises NotFound ``evaluation_not_found``, Conflict ``evaluation_state``, ``evaluation_outdated``, ``recording_gone``.
    """
    await evaluations.turn(tx, evaluation_id)
    row = await evaluations.load(tx, evaluation_id)
    if row is None:
        raise NotFound("evaluation_not_found", f"no evaluation {evaluation_id}")
    if row.state in (EvaluationState.RUNNING, EvaluationState.DONE):
        return row
    check_state(row, {EvaluationState.DRAFT, EvaluationState.CHECKING})
    found = await recall(tx, row)
    agents = [(one.id, one.samples) for one in found.members]
    wanted = [(slot, None) for slot in slots(agents, found.task_ids, row.spec.order)]
    runs = await make_runs(tx, row, found.templates, wanted)
    await evaluations.note(tx, row.id, actor, "start", {"runs": runs, "preflight_skipped": preflight_skipped})
    resolved = {**row.resolved, "preflight_skipped": preflight_skipped}
    at = await database_clock.now(tx)
    return await evaluations.change(tx, row.id, **evaluations.by_counts(), resolved=resolved, started_at=at)


async def make_runs(tx: Tx, row: EvaluationRow, templates: Templates, wanted: Wanted) -> int:
    """Insert runs in this order and count them; return how many. No run of it may be touched after this.

    Raises Conflict ``recording_gone``.
    """
    places = list(wanted)
    recorded = await recordings(tx, row, [slot for slot, _ in places])
    news = [run_of(templates, slot, row.id, before, recorded.get(slot)) for slot, before in places]
    held = [new for new in news if new.driver is Driver.EXTERNAL]
    queued = [new for new in news if new.driver is not Driver.EXTERNAL]
    await run_batches.insert_many(tx, queued)
    await run_batches.insert_many(tx, held, AWAITING_UPLOAD)
    await members.count_inserted(tx, row.id, Phase.QUEUED, _by_agent(queued))
    await members.count_inserted(tx, row.id, Phase.HELD, _by_agent(held))
    return len(news)


def _by_agent(news: Sequence[NewRun]) -> Counter[str]:
    return Counter(new.agent_id for new in news)

"""An evaluation again, from its recordings: the same agents, tasks and samples, every model and judge answered as it was then.

What it replays must be whole: a place without a run that counts has nothing to answer from, and nobody is asked in its stead.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from service.domain.agents import Driver
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.evaluation_plans import Filled, Item, Slot, missing, slots
from service.domain.evaluations import AgentChoice, EvaluationSpec
from service.lifecycle.evaluations.fitting import Member
from service.lifecycle.evaluations.problems import Problems
from service.store.database import Tx
from service.store.evaluations import evaluations, members
from service.store.evaluations import slots as places
from service.store.rows_evaluations import EvaluationRow

_ITS_OWN = ("name", "replay_of", "budget", "stop_rules", "concurrency", "labels", "notes")
"""What a replay may say; all else is as it was."""
_BY_ITSELF = frozenset({Driver.KIT, Driver.LOOP})


async def whole_spec(tx: Tx, project_id: str, asked: EvaluationSpec) -> EvaluationSpec:
    """Return what is asked for; of a replay with all that it takes from the evaluation that it replays.

    Raises NotFound ``evaluation_not_found``, Invalid ``replay_says_more``, Conflict ``not_replayable``.
    """
    if asked.replay_of is None:
        return asked
    before = await evaluations.get(tx, project_id, asked.replay_of)
    if before is None:
        raise NotFound("evaluation_not_found", f"no evaluation {asked.replay_of}")
    if more := sorted(asked.model_fields_set - set(_ITS_OWN)):
        detail = f"a replay may say {', '.join(_ITS_OWN)}; the rest is as it was in {before.id}"
        raise Invalid("replay_says_more", detail, fields=more)
    agents = await members.agents_of(tx, before.id)
    tasks = [one.task_id for one in await members.tasks_of(tx, before.id)]
    wanted = slots([(one.agent_id, one.samples) for one in agents], tasks, before.spec.order)
    _check_whole(before.id, wanted, await places.filled(tx, before.id))
    choices = [AgentChoice(agent=one.agent_id, samples=one.samples, run=one.settings) for one in agents]
    taken: dict[str, Any] = {
        "benchmark": before.benchmark_id,
        "task_ids": [] if before.benchmark_id else tasks,
        "agents": choices,
        "matrix": None,
        "settings": {},
        "plan": before.plan,
    }
    own = {name: getattr(asked, name) for name in _ITS_OWN}
    return before.spec.model_copy(update={**taken, **own})


async def same_tasks(tx: Tx, spec: EvaluationSpec, there: Sequence[Item]) -> list[Item] | None:
    """Return the items that the replayed evaluation has, whatever became of them since; null where this is no replay."""
    if spec.replay_of is None:
        return None
    chosen = {one.item_key: one.task_id for one in await members.tasks_of(tx, spec.replay_of)}
    return [item for item in there if chosen.get(item.key) == item.task_id]


def check_drivers(spec: EvaluationSpec, found: Iterable[Member], problems: Problems) -> None:
    """Add a problem for each agent of a replay whose work no recording can do again."""
    for one in found:
        if spec.replay_of is not None and one.doer.driver not in _BY_ITSELF:
            detail = f"its runs are driven by {one.doer.driver}: nothing can do them again"
            problems.add(Invalid("cannot_replay", detail), agent=one.label)


async def recordings(tx: Tx, row: EvaluationRow, wanted: Sequence[Slot]) -> dict[Slot, str]:
    """Return the run that answers each of these places; nothing where this is no replay. Raises Conflict ``recording_gone``."""
    if row.spec.replay_of is None:
        return {}
    filled = await places.filled(tx, row.spec.replay_of)
    found = {one.slot: one.run_id for one in filled if one.counts and one.outcome is not None}
    if lost := [slot for slot in wanted if slot not in found]:
        detail = f"of {len(lost)} runs {row.spec.replay_of} has no finished one that counts any more"
        raise Conflict("recording_gone", detail, runs=len(lost))
    return found


def _check_whole(evaluation_id: str, wanted: Iterable[Slot], filled: Sequence[Filled]) -> None:
    lacking = len(missing(wanted, filled))
    going = sum(one.outcome is None for one in filled)
    if lacking or going:
        detail = f"{evaluation_id} is not whole: {going} runs are not done, {lacking} are missing"
        raise Conflict("not_replayable", detail, not_done=going, missing=lacking)

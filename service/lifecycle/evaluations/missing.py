"""What an evaluation lacks is made: after a stop, for an agent that was added, or in the place of runs that went wrong."""

from collections.abc import Collection, Sequence

from pydantic import Field

from service.domain.cleaning import clean_json
from service.domain.errors import Conflict, Invalid
from service.domain.evaluation_plans import Filled, Slot, expand, missing, slots
from service.domain.evaluations import MOST_AGENTS, MOST_RUNS, AgentChoice, EvaluationState
from service.domain.run_states import EndedBecause, Outcome
from service.domain.tasks import Strict
from service.lifecycle.evaluations.agents import members_of
from service.lifecycle.evaluations.drafting import agent_rows, described
from service.lifecycle.evaluations.fitting import Member, fit, work_of
from service.lifecycle.evaluations.grading import check_clients
from service.lifecycle.evaluations.problems import Problems
from service.lifecycle.evaluations.recalling import Recalled, check_state, own_settings, recall
from service.lifecycle.evaluations.starting import make_runs
from service.lifecycle.evaluations.warning import look_around
from service.lifecycle.image_choice import ChosenImages
from service.store import invalidations
from service.store.database import Tx
from service.store.evaluations import evaluations, members
from service.store.evaluations import slots as places
from service.store.rows_evaluations import EvaluationRow

STARTED = frozenset({EvaluationState.RUNNING, EvaluationState.DONE, EvaluationState.STOPPED})
MOST_RETRIED = 5_000
"""Runs that one request redoes."""


class RetryRequest(Strict):
    """Which runs are redone: those that are done, and that both members name where both are given."""

    because: list[EndedBecause] = Field(default_factory=list[EndedBecause], max_length=32)
    outcomes: list[Outcome] = Field(default_factory=list[Outcome], max_length=8)


async def resume(tx: Tx, row: EvaluationRow, actor: str) -> tuple[EvaluationRow, int]:
    """Make the runs that are missing: never made, deleted, invalidated or cancelled. Returns how many.

    The caller has taken its turn and read ``row`` after that. Raises Conflict ``evaluation_state``, ``evaluation_outdated``.
    """
    check_state(row, STARTED)
    found = await recall(tx, row)
    made = await _fill(tx, row, found, await places.filled(tx, row.id))
    await evaluations.note(tx, row.id, actor, "resume", {"runs": made})
    return await _going(tx, row), made


async def add(
    tx: Tx, row: EvaluationRow, choices: Sequence[AgentChoice], actor: str
) -> tuple[EvaluationRow, int]:  # fmt: skip
    """Add agents; if the evaluation has started, their runs are made. Returns how many.

    Raises Invalid ``evaluation_refused``, ``duplicate_agents``, ``too_many_agents``, ``too_many_runs``, Conflict
    ``evaluation_state``, ``evaluation_is_replay``.
    """
    check_state(row, {*STARTED, EvaluationState.DRAFT})
    if row.spec.replay_of is not None:
        raise Conflict(
            "evaluation_is_replay", "a replay has the agents of the evaluation that it replays, and no others"
        )
    there = await members.agents_of(tx, row.id)
    expanded, problems = expand(choices, None), Problems()
    spec = row.spec.model_copy(update={"run": own_settings(row)})
    added = await members_of(tx, row.project_id, spec, expanded.choices, problems)
    for one in added:
        if one.id in {other.agent_id for other in there}:
            problems.add(Invalid("duplicate_agent", "it is in this evaluation already"), agent=one.label)
    task_ids = [one.task_id for one in await members.tasks_of(tx, row.id)]
    _check_size(row, len(there) + len(added), sum(one.samples for one in added) * len(task_ids))
    work = await work_of(tx, row.project_id, task_ids, row.plan)
    templates = await fit(ChosenImages(tx, row.project_id), work, added, problems)
    await check_clients(tx, row.project_id, added, work.manifests, problems)
    problems.refuse()
    await look_around(tx, row.project_id, added, templates, [], problems)
    await members.add_agents(tx, agent_rows(row.id, added, await members.next_position(tx, row.id)))
    recalled = Recalled(added, task_ids, work, templates)
    made = 0 if row.state is EvaluationState.DRAFT else await _fill(tx, row, recalled, [])
    detail = {"agents": [one.label for one in added], "runs": made, "warnings": problems.warnings}
    await evaluations.note(tx, row.id, actor, "add_agents", detail)
    resolved = clean_json(_merged(row, added, recalled))
    if row.state is EvaluationState.DRAFT:
        return await evaluations.change(tx, row.id, resolved=resolved), made
    return await _going(tx, row, resolved=resolved), made


async def retry(tx: Tx, row: EvaluationRow, asked: RetryRequest, actor: str) -> tuple[EvaluationRow, int]:
    """Invalidate the runs that ended so, and make others in their places. Returns how many.

    Raises Conflict ``evaluation_state``, ``evaluation_outdated``, Invalid ``nothing_named``, ``too_many_runs``.
    """
    check_state(row, STARTED)
    if not asked.because and not asked.outcomes:
        raise Invalid("nothing_named", "say which runs: by because, by outcomes, or by both")
    before = await places.filled(tx, row.id)
    redone = [one for one in before if _named(one, asked)]
    if len(redone) > MOST_RETRIED:
        raise Invalid("too_many_runs", f"{len(redone)} runs; at most {MOST_RETRIED} at once", runs=len(redone))
    slots_ = {one.slot for one in redone}
    found = await recall(tx, row, {slot.agent_id for slot in slots_})
    reason = f"retry: {', '.join([*asked.because, *asked.outcomes])}"
    ids = sorted(one.run_id for one in redone)
    await invalidations.invalidate(tx, ids, actor, reason)
    made = await _fill(tx, row, found, [one for one in before if one.run_id not in set(ids)], slots_, redone)
    await evaluations.note(tx, row.id, actor, "retry", {**asked.model_dump(mode="json"), "runs": made})
    return await _going(tx, row), made


def _named(one: Filled, asked: RetryRequest) -> bool:
    if one.outcome is None or not one.counts:
        return False
    by_cause = not asked.because or one.ended_because in asked.because
    return by_cause and (not asked.outcomes or one.outcome in asked.outcomes)


async def _fill(
    tx: Tx,
    row: EvaluationRow,
    found: Recalled,
    filled: Sequence[Filled],
    only: Collection[Slot] | None = None,
    redone: Sequence[Filled] = (),
) -> int:
    """Make what is missing of these agents, in the evaluation's order; of ``only`` these slots, if given.

    ``redone``: runs that do not count any more.
    """
    former = {one.slot: one.run_id for one in redone}
    agents = [(one.id, one.samples) for one in found.members]
    wanted = [slot for slot in slots(agents, found.task_ids, row.spec.order) if only is None or slot in only]
    lacking = [(slot, former.get(slot, before)) for slot, before in missing(wanted, filled)]
    return await make_runs(tx, row, found.templates, lacking)


async def _going(tx: Tx, row: EvaluationRow, **columns: object) -> EvaluationRow:
    return await evaluations.change(tx, row.id, **evaluations.by_counts(), **columns)


def _merged(row: EvaluationRow, added: Sequence[Member], found: Recalled) -> dict[str, object]:
    more = described(added, found.templates, len(found.task_ids))
    images = sorted({*row.resolved.get("images", []), *more["images"]})
    return {**row.resolved, "agents": [*row.resolved.get("agents", []), *more["agents"]], "images": images}


def _check_size(row: EvaluationRow, agents: int, more: int) -> None:
    if agents > MOST_AGENTS:
        raise Invalid("too_many_agents", f"an evaluation has at most {MOST_AGENTS} agents", agents=agents)
    if row.total + more > MOST_RUNS:
        raise Invalid("too_many_runs", f"an evaluation has at most {MOST_RUNS} runs", runs=row.total + more)

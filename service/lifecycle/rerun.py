"""A run again (NEEDS B16): the same task, sample and rules with what is to be different, as a new run.

``fresh`` asks the providers anew; ``replay`` is answered from the earlier run's recording, with no provider.
"""

from typing import Any, Literal, TypeVar

from pydantic import Field

from service.domain.agents import AgentSpec
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.policies import RunBudget
from service.domain.tasks import LABELS, Name, NetworkPolicy, Strict
from service.lifecycle.submit import Origin, RunRequest, submit
from service.store import agents, model_requests, service_calls
from service.store.database import Tx
from service.store.rows import AgentRow, Project, RunRow

T = TypeVar("T")


class Overrides(Strict):
    """What the new run has in place of the earlier one's; null or absent: as it was."""

    model: Name | None = None
    """Another model of the catalogue."""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=64)
    """Replaces settings of the agent by name; null takes one away. With this or ``model`` the run gets an agent of its
    own, made where the project has none like it."""
    limits: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=32)
    """Replaces fields of the run's limits."""
    budget: RunBudget | None = None
    network: NetworkPolicy | None = None
    labels: LABELS | None = None
    priority: int | None = Field(default=None, ge=-100, le=100)
    max_attempts: int | None = Field(default=None, ge=1, le=5)
    keep_on_failure_s: float | None = Field(default=None, ge=0, le=86_400)

    @property
    def another_agent(self) -> bool:
        return self.model is not None or bool(self.settings)


class RerunRequest(Strict):
    mode: Literal["fresh", "replay"] = "fresh"
    overrides: Overrides = Field(default_factory=Overrides)


async def rerun(tx: Tx, project: Project, run: RunRow, request: RerunRequest) -> RunRow:
    """Insert the new run. ``run`` is of the project.

    Raises Conflict ``run_not_ended`` (a replay of a run that still asks), Invalid ``no_recording``, and as ``submit``.
    """
    replay = request.mode == "replay"
    if replay:
        await _check_recording(tx, run)
    changes = request.overrides
    agent = await _agent(tx, project.id, run, changes)
    asked = RunRequest(
        task=run.task_id,
        agent=agent.id,
        sample=run.sample,
        priority=_or(changes.priority, run.priority),
        max_attempts=_or(changes.max_attempts, run.max_attempts),
        limits={**run.limits.model_dump(mode="json"), **changes.limits},
        labels=_or(changes.labels, run.labels),
        budget=_or(changes.budget, run.budget),
        network=_or(changes.network, run.network.policy),
        keep_on_failure_s=_or(changes.keep_on_failure_s, run.keep_on_failure_s),
        runtime=run.runtime,
        plan=run.plan,
    )
    return await submit(tx, project, asked, Origin(run.id, run.id if replay else None))


async def _check_recording(tx: Tx, run: RunRow) -> None:
    if run.ended_because is None:
        raise Conflict("run_not_ended", "a run that has not ended has no whole recording yet")
    if not (await model_requests.is_recorded(tx, run.id) or await service_calls.is_recorded(tx, run.id)):
        raise Invalid("no_recording", "of this run no request was kept: there is nothing to answer from")


async def _agent(tx: Tx, project_id: str, run: RunRow, changes: Overrides) -> AgentRow:
    row = await agents.get(tx, project_id, run.agent_id)
    if row is None:
        raise NotFound("agent_not_found", f"no agent {run.agent_id}")
    if not changes.another_agent:
        return row
    merged = {**row.spec.settings, **changes.settings}
    settings = {name: value for name, value in merged.items() if value is not None}
    spec = AgentSpec(scaffold=row.spec.scaffold, model=changes.model or row.spec.model, settings=settings)
    return (await agents.create(tx, project_id, spec))[0]


def _or(changed: T | None, before: T) -> T:
    return before if changed is None else changed

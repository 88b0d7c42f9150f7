"""Step *submit*: a request becomes a queued run. Called by the API; next: queue.

Everything that can be refused is refused here, before a sandbox is made: what is unknown, what cannot be planned, what
no limit allows. Run, first event and notification are one transaction, the caller's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field, ValidationError

from service.domain.agents import SCREENS, AgentSettings, AgentSpec, Driver, ScaffoldManifest, Surface
from service.domain.desktop import NEEDS
from service.domain.errors import Invalid, NotFound
from service.domain.grading_plans import TASK_PLAN
from service.domain.grants import GrantedModel
from service.domain.limits import Limits
from service.domain.policies import MOST_DENIED, NetworkRules, RunBudget, hosts_of
from service.domain.run_states import Flag
from service.domain.tasks import LABELS, NetworkPolicy, Strict, TaskManifest
from service.lifecycle.client_facts import check_client, talks
from service.lifecycle.image_choice import ChosenImages
from service.lifecycle.model_access import find_models, provider_tools
from service.lifecycle.plan_inputs import plan_context
from service.lifecycle.plans import grading_plan
from service.lifecycle.uploads import await_upload
from service.scaffolds.registry import scaffold_for, surface_for
from service.store import agents, contamination, runs, scaffolds, tasks
from service.store.database import Tx
from service.store.rows import AgentRow, NewRun, Project, RunRow, ScaffoldRow

Reference = Annotated[str, Field(min_length=1, max_length=200)]


class RunRequest(Strict):
    """One agent on one task."""

    task: Reference
    """Task id."""
    agent: Reference
    """Agent id or label."""
    sample: int = Field(default=1, ge=1, le=10_000)
    priority: int = Field(default=0, ge=-100, le=100)
    """Higher first, before fairness between projects; among one project's own runs and those of others alike."""
    max_attempts: int = Field(default=3, ge=1, le=5)
    """A further attempt is made only where infrastructure failed."""
    limits: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=32)
    """Replaces fields of the task's limits; the scaffold's minimum still holds."""
    labels: LABELS = Field(default_factory=dict[str, str])
    budget: RunBudget = Field(default_factory=RunBudget)
    """What all attempts together may spend on models."""
    network: NetworkPolicy | None = None
    """Another policy than the task's; the run is then flagged ``policy_changed``."""
    keep_on_failure_s: float = Field(default=0, ge=0, le=86_400)
    """Seconds that the sandbox of a run that did not complete is kept, paused, for a look; it changes no grade."""
    manual: bool = False
    """Make the sandbox as for the agent and start nothing in it: a client or a person drives, as for kind ``remote``. The
    run is flagged ``assisted``."""
    runtime: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")] | None = None
    """Container runtime; null = any that the host offers."""
    plan: Reference = TASK_PLAN
    """Grading plan, ``name@version`` or a name for its newest version; what is not ``task@1`` is checked against the task."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The run that a new one comes from, and the one whose recording answers it."""

    derived_from: str | None = None
    replay_of: str | None = None


@dataclass(frozen=True, slots=True)
class Doer:
    """An agent with what its runs need to know of it."""

    agent: AgentRow
    scaffold: ScaffoldRow
    surface: Surface
    models: list[GrantedModel]
    """Its own first."""
    driver: Driver

    def talks(self, task: TaskManifest) -> bool:
        """Tell whether its runs may ask the task's client."""
        return talks(task, self.driver, scaffold_for(self.scaffold.manifest.kind))


async def submit(tx: Tx, project: Project, request: RunRequest, origin: Origin = Origin()) -> RunRow:
    """Insert a queued run. Raises NotFound (task, agent, grading plan), Invalid (limits, a task that the scaffold cannot
    do, a client that could not answer, a surface, a grading plan that could not grade the task)."""
    task = await tasks.get(tx, project.id, request.task)
    if task is None:
        raise NotFound("task_not_found", f"no task {request.task}")
    doer = await doer_of(tx, project.id, request.agent, manual=request.manual)
    plan = await grading_plan(tx, project.id, request.plan, task.manifest)
    denied = await contamination.deny_lists_of(tx, project.id, task.id)
    new = await planned(ChosenImages(tx, project.id), task.id, task.manifest, doer, request, denied)
    if doer.talks(task.manifest):
        await check_client(tx, task, doer.agent.spec.model)
    flags = (*new.flags, *([Flag.REPLAYED] if origin.replay_of else []))
    from_ = {"derived_from": origin.derived_from, "replay_of": origin.replay_of}
    run = await runs.insert(tx, replace(new, plan=plan, flags=flags, **from_))
    return await await_upload(tx, run) if doer.driver is Driver.EXTERNAL else run


async def doer_of(tx: Tx, project_id: str, reference: str, *, manual: bool = False) -> Doer:
    """Return the project's agent of this id or label. Raises NotFound ``agent_not_found``, Invalid (surface, models)."""
    agent = await agents.get(tx, project_id, reference)
    scaffold = None if agent is None else await scaffolds.get(tx, project_id, agent.scaffold_id)
    if agent is None or scaffold is None:
        raise NotFound("agent_not_found", f"no agent {reference}")
    surface = surface_for(scaffold.manifest, AgentSettings.of(agent.spec.settings))
    models = await find_models(tx, project_id, agent.spec)
    driver = Driver.REMOTE if manual else scaffold_for(scaffold.manifest.kind).driver
    return Doer(agent, scaffold, surface, models, driver)


async def planned(
    images: ChosenImages, task_id: str, task: TaskManifest, doer: Doer, request: RunRequest, denied: Iterable[str]
) -> NewRun:
    """Return the run that ``request`` asks for, checked and with everything resolved but its grading plan, which is as
    ``request`` says it. ``denied``: see :func:`network_rules`. Raises Invalid, Conflict ``image_not_ready``."""
    agent, scaffold = doer.agent, doer.scaffold
    limits = resolve_limits(task.limits, request.limits, scaffold.manifest.minimum)
    limits = limits.widened(NEEDS if doer.surface in SCREENS else None)
    check_plan(task, agent.spec, scaffold.manifest, limits, doer.models)
    network = network_rules(task, request.network, denied)
    changed = network.policy is not task.network
    return NewRun(
        project_id=agent.project_id,
        task_id=task_id,
        agent_id=agent.id,
        limits=limits,
        environment=await images.environment(task.environment, doer.surface),
        kit=await images.kit(scaffold.manifest.kit),
        sample=request.sample,
        max_attempts=request.max_attempts,
        priority=request.priority,
        plan=request.plan,
        runtime=request.runtime,
        labels=request.labels,
        driver=doer.driver,
        model_id=doer.models[0].id if agent.spec.model is not None else None,
        budget=request.budget,
        network=network,
        provider_tools=provider_tools(network, AgentSettings.of(agent.spec.settings)),
        keep_on_failure_s=request.keep_on_failure_s,
        flags=tuple([Flag.ASSISTED] * request.manual + [Flag.POLICY_CHANGED] * changed),
    )


def network_rules(task: TaskManifest, asked: NetworkPolicy | None, denied: Iterable[str]) -> NetworkRules:
    """Return what a run of the task may reach. ``denied``: hosts that the task's benchmarks name beside its own."""
    deny = dict.fromkeys([*task.deny_hosts, *hosts_of(denied)])
    return NetworkRules(policy=asked or task.network, allow_hosts=task.allow_hosts, deny_hosts=[*deny][:MOST_DENIED])


def resolve_limits(task: Limits, changed: dict[str, Any], minimum: Limits | None) -> Limits:
    """Return the task's limits with ``changed`` fields, raised to the scaffold's minimum. Raises Invalid ``bad_limits``."""
    try:
        merged = Limits.model_validate({**task.model_dump(), **changed})
    except ValidationError as error:
        problems = [{"at": ["limits", *e["loc"]], "message": e["msg"]} for e in error.errors(include_url=False)]
        raise Invalid("bad_limits", str(problems[0]["message"]), problems=problems) from error
    return merged.widened(minimum)


def check_plan(
    task: TaskManifest,
    agent: AgentSpec,
    manifest: ScaffoldManifest,
    limits: Limits,
    models: Sequence[GrantedModel] = (),
) -> None:
    """Refuse what the scaffold could not plan. Raises Invalid."""
    context = plan_context(agent, models, sample=1, seconds=limits.wall_clock_s, deadline_unix=0, manifest=manifest)
    scaffold_for(manifest.kind).plan(task, agent, manifest, context)

"""Everything that a step needs to know of a run, read in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest, Surface, surface_of
from service.domain.errors import Fault
from service.domain.grants import GrantedModel
from service.domain.tasks import TaskManifest
from service.lifecycle.context import MOST_KNOWN, Context, Parts
from service.lifecycle.image_choice import host_name
from service.scaffolds.contract import Scaffold
from service.scaffolds.registry import scaffold_for
from service.store import agents, clock, pauses, run_models, runs, scaffolds, tasks
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow, RunRow


@dataclass(frozen=True, slots=True)
class Work:
    run: RunRow
    task: TaskManifest
    agent: AgentSpec
    manifest: ScaffoldManifest
    models: Sequence[GrantedModel]
    """What the agent may ask, as the catalogue says now; its own model first."""
    seconds_since_start: float
    """Since the attempt's ``started_at``, by the database's clock; 0 before the start."""
    seconds_left: float
    """Until the attempt's deadline, by the database's clock; the whole wall clock before one is set."""
    environment: str
    """As the host's engine calls it; so is the kit."""
    kit: str | None
    absent_s: float = 0.0
    """Since anything was written of the run, by the database's clock: after a loss, how long nobody of ours was there."""

    @property
    def scaffold(self) -> Scaffold:
        return scaffold_for(self.manifest.kind)

    @property
    def surface(self) -> Surface:
        return surface_of(self.manifest, AgentSettings.of(self.agent.settings))


async def load_work(ctx: Context, attempt: AttemptRow) -> Work:
    """Read the attempt's run and what it runs. Raises NotFound if the run is gone, Unavailable."""

    async def read(tx: Tx) -> Work:
        return await _read(tx, attempt, ctx.known)

    return await retrying(ctx.db, read, ctx.timing.database_patience_s)


async def _read(tx: Tx, attempt: AttemptRow, known: dict[tuple[str, str], Parts]) -> Work:
    run = await runs.load(tx, attempt.run_id)
    parts = known.get((run.task_id, run.agent_id))
    if parts is None:
        parts = await _parts(tx, run)
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[run.task_id, run.agent_id] = parts
    now = await clock.now(tx)
    since = (now - attempt.started_at).total_seconds() if attempt.started_at else 0.0
    left = (attempt.deadline_at - now).total_seconds() if attempt.deadline_at else run.limits.wall_clock_s
    if run.driver is Driver.PERSON and attempt.started_at is not None:
        paused = await pauses.standing(tx, attempt.run_id, attempt.n)
        since, left = since - paused.total_s, paused.left_s
    names = parts[1].models()
    granted = await run_models.granted_models(tx, run.project_id, names) if names else []
    environment = await host_name(tx, run.environment)
    kit = None if run.kit is None else await host_name(tx, run.kit)
    absent = max(0.0, (now - run.updated_at).total_seconds())
    return Work(run, *parts, granted, max(0.0, since), left, environment, kit, absent)


async def _parts(tx: Tx, run: RunRow) -> Parts:
    task = await tasks.get(tx, run.project_id, run.task_id)
    agent = await agents.get(tx, run.project_id, run.agent_id)
    scaffold = None if agent is None else await scaffolds.get(tx, run.project_id, agent.scaffold_id)
    if task is None or agent is None or scaffold is None:
        raise Fault("run_incomplete", f"{run.id} lacks its task, agent or scaffold")
    return task.manifest, agent.spec, scaffold.manifest

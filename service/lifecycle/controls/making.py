"""One control of one run: found or made, sealed as an upload is, and graded under the same plan as its original."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.artifacts import ArtifactEntry, Deliverable
from service.domain.controls import HOW, LABEL, OF, SEED, ControlKind, ControlsSpec
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.run_states import Flag
from service.graders.judging.orders import drawn
from service.lifecycle.clock import Clock
from service.lifecycle.controls.altering import Altered, quartered, whole
from service.lifecycle.integrity import entries_of
from service.lifecycle.regrading import regrade
from service.lifecycle.submit import RunRequest, submit
from service.lifecycle.uploads import described, manifest_bytes, placed, seal_upload
from service.store import agents, blob_refs, combining, controls, projects, runs, scaffolds, tasks
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.rows import RunRow, TaskRow

MADE, FOUND = "made", "found"
_LABEL_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is to be sealed; its bytes are all in the content store."""

    deliverable: Deliverable
    manifest: tuple[str, int]
    altered: Altered


class Skipped(Exception):
    """There is no such control of this run; the message is the reason in one word."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where controls are made."""

    db: Database
    blobs: BlobStore
    database_patience_s: float = 600.0


@dataclass(frozen=True, slots=True)
class _Original:
    run: RunRow
    task: TaskRow
    plan: str
    material: Sequence[ArtifactEntry]
    """Entries of the deliverable that the control is made of."""
    how: str


async def make_control(shop: Workshop, project_id: str, spec: ControlsSpec, of: str, kind: ControlKind) -> str:
    """Find or make the control; return ``made``, ``found`` or why there is none. Raises Unavailable."""
    try:
        patience = shop.database_patience_s
        original = await retrying(
            shop.db, partial(_original, project_id=project_id, spec=spec, of=of, kind=kind), patience
        )
        ready = await asyncio.to_thread(_ready, shop.blobs, kind, original)
        make = partial(_find_or_make, spec=spec, kind=kind, original=original, ready=ready)
        return await retrying(shop.db, make, patience)
    except Skipped as error:
        return str(error)
    except (NotFound, Invalid, Conflict) as error:  # a lost file, a plan that does not fit the task, limits of the task
        return error.type


async def _original(tx: Tx, *, project_id: str, spec: ControlsSpec, of: str, kind: ControlKind) -> _Original:
    run = await runs.get(tx, project_id, of)
    task = None if run is None else await tasks.get(tx, project_id, run.task_id)
    if run is None or task is None:
        raise Skipped("run_not_found")
    if run.deliverable_digest is None or Flag.CONTROL in run.flags:
        raise Skipped("run_not_sealed" if run.deliverable_digest is None else "is_a_control")
    plan = spec.plan or run.plan
    if kind is ControlKind.EMPTY:
        return _Original(run, task, plan, [], "nothing delivered")
    if kind is ControlKind.QUARTER:
        return _Original(run, task, plan, await entries_of(tx, run.id), "")
    source = await (_weaker if kind is ControlKind.WEAKER else _other_task)(tx, spec, run, task)
    return _Original(run, task, plan, await entries_of(tx, source), f"deliverable of {source}")


async def _weaker(tx: Tx, spec: ControlsSpec, run: RunRow, task: TaskRow) -> str:
    agent = await agents.get(tx, run.project_id, spec.weaker or "")
    if agent is None or agent.id == run.agent_id:
        raise Skipped("agent_not_found" if agent is None else "same_agent")
    found = await controls.sources(tx, run.project_id, agent_id=agent.id, task_id=task.id)
    return _one(found, spec, run, "no_weaker_run")


async def _other_task(tx: Tx, spec: ControlsSpec, run: RunRow, task: TaskRow) -> str:
    """Its own agent's work for another task where there is some, else anybody's."""
    value = task.manifest.facets.get(spec.facet)
    if not isinstance(value, str):
        raise Skipped("no_category")
    for agent_id in (run.agent_id, None):
        found = await controls.sources(
            tx, run.project_id, agent_id=agent_id, not_task_id=task.id, facet=(spec.facet, value)
        )
        if found:
            break
    return _one(found, spec, run, "no_other_task")


def _one(found: Sequence[str], spec: ControlsSpec, run: RunRow, otherwise: str) -> str:
    if not found:
        raise Skipped(otherwise)
    return found[int(drawn("control", spec.seed, run.id)[:12], 16) % len(found)]


def _ready(blobs: BlobStore, kind: ControlKind, original: _Original) -> _Ready:
    if kind is ControlKind.QUARTER:
        altered = quartered(original.material, blobs)
        if not altered.files:
            raise Skipped("nothing_left")
    else:
        altered = whole(original.material, original.how)
    deliverable = described(placed(altered.files, original.task.manifest), blobs)
    return _Ready(deliverable, blobs.store_bytes(manifest_bytes(deliverable)), altered)


async def _find_or_make(tx: Tx, *, spec: ControlsSpec, kind: ControlKind, original: _Original, ready: _Ready) -> str:
    run = original.run
    known = await controls.hold(tx, run.project_id, kind, run.id, spec.seed)
    made = await _make(tx, spec, kind, original, ready) if known is None else known
    for run_id in (run.id, made):
        await _have_graded(tx, run.project_id, run_id, original.plan)
    return MADE if known is None else FOUND


async def _make(tx: Tx, spec: ControlsSpec, kind: ControlKind, original: _Original, ready: _Ready) -> str:
    run, project = original.run, await projects.get(tx, original.run.project_id)
    if project is None:
        raise Skipped("run_not_found")
    await _take(tx, project.id, ready.altered)
    labels = {LABEL: kind.value, OF: run.id, SEED: str(spec.seed), HOW: ready.altered.how[:_LABEL_CHARS]}
    agent = await _agent(tx, project.id, kind)
    request = RunRequest(task=run.task_id, agent=agent, labels=labels, plan=original.plan, sample=run.sample)
    control = await submit(tx, project, request)
    await runs.add_flags(tx, control.id, [Flag.CONTROL])
    await seal_upload(tx, control.id, ready.deliverable, ready.manifest, Clock())
    return control.id


async def _take(tx: Tx, project_id: str, altered: Altered) -> None:
    """Keep the files from the collector until the control's own refs are there."""
    await blob_refs.add_refs(tx, project_id, blob_refs.UPLOAD, project_id, altered.made)
    wanted = {f.sha256 for f in altered.files}
    if wanted - set(await blob_refs.project_sizes(tx, project_id, wanted, hold=True)):
        raise Skipped("deliverable_gone")


async def _agent(tx: Tx, project_id: str, kind: ControlKind) -> str:
    """Return the agent of a kind, made when it is first needed. Raises Conflict (its label is another's)."""
    name = f"control-{kind.value.replace('_', '-')}"
    await scaffolds.register(tx, project_id, ScaffoldManifest(name=name, version="1", kind="external"))
    spec = AgentSpec(scaffold=f"{name}@1", label=f"control/{kind.value}")
    return (await agents.create(tx, project_id, spec))[0].id


async def _have_graded(tx: Tx, project_id: str, run_id: str, plan: str) -> None:
    """Queue gradings under the plan where the run has none; its own plan stays its own."""
    if not await combining.is_graded_under(tx, run_id, plan):
        await regrade(tx, project_id, run_id, plan=plan)

"""A request becomes a draft: what it means is worked out, checked, estimated and kept. Nothing runs yet (NEEDS B2)."""

import asyncio
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from service.domain.annotations import overlays_of
from service.domain.cleaning import clean_json
from service.domain.errors import Invalid, NotFound
from service.domain.evaluation_plans import Item, Selected, expand, select
from service.domain.evaluations import MOST_RUNS, MOST_TASKS, EvaluationSpec
from service.domain.grading_plans import PlanSpec
from service.domain.ids import new_id
from service.lifecycle.evaluations.agents import members_of
from service.lifecycle.evaluations.estimating import Question, estimate
from service.lifecycle.evaluations.fitting import Member, Templates, Work, fit, work_of
from service.lifecycle.evaluations.grading import check_clients, check_grading
from service.lifecycle.evaluations.problems import Problems
from service.lifecycle.evaluations.replaying import check_drivers, same_tasks, whole_spec
from service.lifecycle.evaluations.warning import look_around
from service.lifecycle.image_choice import ChosenImages
from service.store import grading_plans, overlays
from service.store.blobs import BlobStore
from service.store.catalogue import storable
from service.store.database import Tx
from service.store.evaluations import evaluations, items, members
from service.store.overlays import Overlay
from service.store.rows import BenchmarkRow
from service.store.rows_evaluations import EvaluationRow


async def draw_up(tx: Tx, blobs: BlobStore, project_id: str, spec: EvaluationSpec, author: str) -> EvaluationRow:
    """Insert a draft, and the agents that it makes.

    Raises Invalid ``evaluation_refused`` (everything that is wrong, as ``problems``), ``no_tasks``, ``too_many_tasks``,
    ``too_many_runs``, ``too_varied`` and as ``evaluation_plans.expand``, ``replaying.whole_spec``; NotFound
    ``benchmark_not_found``, ``plan_not_found``.
    """
    spec, problems = await whole_spec(tx, project_id, spec), Problems()
    body = storable(spec)
    expanded = expand(spec.agents, spec.matrix)
    for out in expanded.useless:
        problems.warn("useless_exclusion", f"the matrix has nothing that is {dict(out)}")
    laid = await _overlays(tx, project_id, spec, problems)
    benchmark, chosen = await _tasks(tx, project_id, spec, laid, problems)
    plan, said = await grading_plans.resolve(tx, project_id, spec.plan)
    found = await members_of(tx, project_id, spec, expanded.choices, problems)
    check_drivers(spec, found, problems)
    _check_size(found, chosen)
    work = await work_of(tx, project_id, [item.task_id for item in chosen], plan)
    templates = await _check(tx, project_id, work, said, found, problems)
    problems.refuse()
    await look_around(tx, project_id, found, templates, chosen, problems)
    resolved = {
        "benchmark": _benchmark(benchmark),
        "plan": plan,
        "seed": spec.seed,
        "order": spec.order,
        "replay_of": spec.replay_of,
        "overlays": [one.described() for one in laid],
        "tasks": [{"id": i.task_id, "digest": i.digest, "key": i.key} for i in chosen],
        **described(found, templates, len(chosen)),
        "warnings": problems.warnings,
        "service_version": metadata.version("workstead"),
    }
    asked = Question(benchmark.name if benchmark else None, said, work.manifests, spec.concurrency)
    values = {
        "id": new_id("eval"),
        "project_id": project_id,
        "name": spec.name,
        "spec": body,
        "resolved": clean_json(resolved),
        "benchmark_id": benchmark.id if benchmark else None,
        "plan": plan,
        "seed": spec.seed,
        "estimate": clean_json(await estimate(tx, blobs, project_id, asked, found, templates)),
        "priority": spec.run.priority or 0,
        "author": author,
        **{name: body[name] for name in ("budget", "stop_rules", "concurrency", "labels", "notes")},
    }
    row = await evaluations.create(tx, values)
    await members.add_agents(tx, agent_rows(row.id, found))
    await members.add_tasks(tx, _task_rows(row.id, chosen))
    await evaluations.note(tx, row.id, author, "draft", {"agents": len(found), "tasks": len(chosen)})
    return row


def described(found: Sequence[Member], templates: Templates, tasks: int) -> dict[str, Any]:
    """Return what is kept of agents: by digests, with the images that their runs need."""
    described = [
        {
            "id": one.id,
            "digest": one.doer.agent.digest,
            "label": one.label,
            "made": one.made,
            "scaffold": one.doer.agent.spec.scaffold,
            "scaffold_digest": one.doer.scaffold.digest,
            "model": one.doer.agent.spec.model,
            "samples": one.samples,
            "runs": one.samples * tasks,
            "settings": one.settings.model_dump(mode="json"),
        }
        for one in found
    ]
    images = {name for run in templates.values() for name in (run.environment, run.kit) if name is not None}
    return {"agents": described, "images": sorted(images)}


def agent_rows(evaluation_id: str, found: Sequence[Member], first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "evaluation_id": evaluation_id,
            "agent_id": one.id,
            "position": position,
            "samples": one.samples,
            "settings": one.own.model_dump(mode="json"),
        }
        for position, one in enumerate(found, first)
    ]


async def _check(
    tx: Tx, project_id: str, work: Work, plan: PlanSpec, found: Sequence[Member], problems: Problems
) -> Templates:
    templates = await fit(ChosenImages(tx, project_id), work, found, problems)
    await check_grading(tx, project_id, plan, work.manifests, problems)
    await check_clients(tx, project_id, found, work.manifests, problems)
    return templates


async def _overlays(tx: Tx, project_id: str, spec: EvaluationSpec, problems: Problems) -> list[Overlay]:
    """Return the annotations whose values choose tasks; a later version of them changes nothing here."""
    try:
        return await overlays.named(tx, project_id, overlays_of(spec.tasks.facets))
    except NotFound as error:
        problems.add(error)
        return []


async def _tasks(
    tx: Tx, project_id: str, spec: EvaluationSpec, laid: Sequence[Overlay], problems: Problems
) -> tuple[BenchmarkRow | None, list[Item]]:
    benchmark = None
    if spec.benchmark is None:
        there = await items.of_tasks(tx, project_id, spec.task_ids)
        missing = sorted(set(spec.task_ids) - {item.task_id for item in there})
        for task_id in missing:
            problems.add(NotFound("task_not_found", f"no task {task_id}"), task=task_id)
    else:
        benchmark = await items.benchmark_meant(tx, project_id, spec.benchmark)
        if benchmark is None:
            raise NotFound("benchmark_not_found", f"no benchmark {spec.benchmark}")
        there = await items.of_benchmark(tx, benchmark.id)
    if (same := await same_tasks(tx, spec, there)) is not None:
        return benchmark, same
    there = await overlays.laid_over(tx, there, laid)
    # Hundreds of patterns over thousands of items take a while: other requests go on meanwhile.
    chosen = await asyncio.to_thread(select, there, spec.tasks, spec.seed)
    _warn_of(chosen, problems)
    if not chosen.items:
        problems.refuse()
        raise Invalid("no_tasks", f"none of {len(there)} tasks is chosen")
    if len(chosen.items) > MOST_TASKS:
        raise Invalid("too_many_tasks", f"an evaluation has at most {MOST_TASKS} tasks", tasks=len(chosen.items))
    return benchmark, chosen.items


def _warn_of(chosen: Selected, problems: Problems) -> None:
    for glob in chosen.useless:
        problems.warn("useless_pattern", f"{glob!r} matches no item")
    if chosen.repeated:
        problems.warn("repeated_tasks", f"{chosen.repeated} items have the task of another one, and are left out")


def _check_size(found: Sequence[Member], chosen: Sequence[Item]) -> None:
    runs = sum(one.samples for one in found) * len(chosen)
    if runs > MOST_RUNS:
        raise Invalid("too_many_runs", f"an evaluation has at most {MOST_RUNS} runs", runs=runs)


def _benchmark(row: BenchmarkRow | None) -> dict[str, Any] | None:
    return None if row is None else {"id": row.id, "name": row.name, "version": row.version, "digest": row.digest}


def _task_rows(evaluation_id: str, chosen: Sequence[Item]) -> list[dict[str, Any]]:
    return [
        {
            "evaluation_id": evaluation_id,
            "task_id": item.task_id,
            "position": position,
            "item_key": item.key,
            "status": str(item.status),
        }
        for position, item in enumerate(chosen)
    ]

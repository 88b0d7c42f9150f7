"""Forecast sets from the client's side: drawn up with an estimate, started, cancelled, filled with what was made elsewhere."""

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.evaluation_plans import Item, select
from service.domain.forecasts import (
    MOST_FORECASTS,
    Forecast,
    ForecastPrompt,
    ForecastSetSpec,
    ForecastSetState,
    ForecastState,
    ImportedForecast,
    Said,
)
from service.domain.models import TokenUsage
from service.domain.operations import ENDED_OPERATIONS
from service.domain.tasks import TaskManifest
from service.lifecycle.estimates import ASSUMED_OUTPUT_TOKENS, CHARS_PER_TOKEN, money
from service.lifecycle.forecasts.wording import Template, asked, template
from service.models.pricing import cost_of
from service.store import agents, clock, forecasts, models, operations, tasks
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.evaluations import items
from service.store.forecasts import NewForecast, SetTask
from service.store.rows_forecasts import ForecastSetRow

KIND = "forecasts"
UNIT = "forecasts"
_STARTABLE = frozenset({ForecastSetState.DRAFT, ForecastSetState.STOPPED, ForecastSetState.CANCELLED})


async def draw_up(tx: Tx, blobs: BlobStore, project_id: str, spec: ForecastSetSpec, author: str) -> ForecastSetRow:
    """Fix tasks and agent and estimate; nobody is asked yet.

    Raises NotFound ``benchmark_not_found``, ``task_not_found``, ``agent_not_found``, Invalid ``no_tasks``,
    ``too_many_forecasts``, ``unknown_model``, ``unknown_effort``, ``unknown_template``.
    """
    shape = template(spec.template)
    benchmark_id, chosen = await _chosen(tx, project_id, spec)
    agent_id = await _agent(tx, project_id, spec)
    total = len(chosen) * len(spec.forecasters) * len(spec.prompts)
    if total > MOST_FORECASTS:
        raise Invalid("too_many_forecasts", f"{total} forecasts; a set has at most {MOST_FORECASTS}", forecasts=total)
    manifests = await tasks.manifests(tx, project_id, [item.task_id for item in chosen]) if total else {}
    estimate = await _estimate(tx, project_id, spec, shape, list(manifests.values()))
    text = await asyncio.to_thread(blobs.store_bytes, shape.text.encode())
    values = {
        "name": spec.name, "spec": spec.model_dump(mode="json"), "benchmark_id": benchmark_id, "agent_id": agent_id,
        "template": shape.name, "total": total, "estimate": estimate, "labels": dict(spec.labels), "author": author,
    }  # fmt: skip
    places = [SetTask(item.task_id, item.key if benchmark_id else None) for item in chosen]
    return await forecasts.create(tx, project_id, values, places, text)


async def start(tx: Tx, project_id: str, set_id: str, *, retry_failed: bool = False) -> ForecastSetRow:
    """Let an operation ask for what is missing; with ``retry_failed`` also for what failed. Under way already: stays so.

    Raises NotFound, Conflict ``forecasts_complete``, Invalid ``no_forecasters``.
    """
    row = await _locked(tx, project_id, set_id)
    if not row.spec.forecasters:
        raise Invalid("no_forecasters", "the set asks nobody: forecasts made elsewhere are imported into it")
    if row.state is ForecastSetState.RUNNING and await _under_way(tx, row):
        return row
    again = row.failed and retry_failed
    if row.state not in _STARTABLE and row.state is not ForecastSetState.RUNNING and not again:
        raise Conflict("forecasts_complete", "nothing is missing; what failed is asked for again with retry_failed")
    if again:
        await forecasts.forget_failed(tx, set_id)
    operation = await operations.create(tx, project_id, KIND, {"set_id": set_id}, unit=UNIT)
    started = {"operation_id": operation.id, "started_at": row.started_at or operation.created_at, "ended_at": None}
    return await forecasts.change(tx, set_id, state=ForecastSetState.RUNNING, stopped_because=None, **started)


async def cancel(tx: Tx, project_id: str, set_id: str) -> ForecastSetRow:
    """End a set that is not done; what was made stays. May be repeated. Raises NotFound, Conflict ``forecasts_complete``."""
    row = await _locked(tx, project_id, set_id)
    if row.state is ForecastSetState.CANCELLED:
        return row
    if row.state is ForecastSetState.DONE:
        raise Conflict("forecasts_complete", "the set is done")
    if row.operation_id is not None:
        await operations.request_cancel(tx, project_id, row.operation_id)
    ended = row.ended_at or await clock.now(tx)
    return await forecasts.change(tx, set_id, state=ForecastSetState.CANCELLED, ended_at=ended)


async def bring(tx: Tx, project_id: str, set_id: str, rows: Sequence[ImportedForecast]) -> int:
    """Record forecasts that were made elsewhere, marked as such; return how many are new, the others stay as they are.

    Raises NotFound, Invalid ``task_not_in_set``.
    """
    row = await _locked(tx, project_id, set_id)
    known = await forecasts.tasks_of(tx, set_id)
    by_name = {one.item_key: one.task_id for one in known if one.item_key is not None}
    by_name |= {one.task_id: one.task_id for one in known}
    unknown = sorted({one.task for one in rows} - set(by_name))
    if unknown:
        raise Invalid("task_not_in_set", f"{unknown[0][:200]!r} is no task of the set", tasks=unknown[:100])
    new = [NewForecast(row.id, project_id, _imported(one, by_name[one.task])) for one in rows]
    return sum(await forecasts.put(tx, new))


def _imported(one: ImportedForecast, task_id: str) -> Forecast:
    return Forecast(
        task_id=task_id,
        forecaster=one.forecaster,
        prompt=one.prompt,
        state=ForecastState.OK,
        said=Said(**{name: getattr(one, name) for name in Said.model_fields}),
        model=one.model,
        source="imported",
        declared_at=one.declared_at,
    )


async def _chosen(tx: Tx, project_id: str, spec: ForecastSetSpec) -> tuple[str | None, list[Item]]:
    benchmark_id = None
    if spec.benchmark is None:
        found = await items.of_tasks(tx, project_id, spec.task_ids)
        missing = sorted(set(spec.task_ids) - {item.task_id for item in found})
        if missing:
            raise NotFound("task_not_found", f"no task {missing[0]}", tasks=missing[:100])
    else:
        benchmark = await items.benchmark_meant(tx, project_id, spec.benchmark)
        if benchmark is None:
            raise NotFound("benchmark_not_found", f"no benchmark {spec.benchmark}")
        benchmark_id, found = benchmark.id, await items.of_benchmark(tx, benchmark.id)
    chosen = select(found, spec.tasks, spec.seed).items
    if not chosen:
        raise Invalid("no_tasks", "the selection leaves no task")
    return benchmark_id, chosen


async def _agent(tx: Tx, project_id: str, spec: ForecastSetSpec) -> str | None:
    if spec.about.agent is None:
        return None
    agent = await agents.get(tx, project_id, spec.about.agent)
    if agent is None:
        raise NotFound("agent_not_found", f"no agent {spec.about.agent}")
    return agent.id


async def _estimate(
    tx: Tx, project_id: str, spec: ForecastSetSpec, shape: Template, manifests: Sequence[TaskManifest]
) -> dict[str, Any]:
    """Return what it will take if every first answer fits: list prices, lengths of the texts, output assumed."""
    reading = _reading(spec, shape, manifests)
    writing = ASSUMED_OUTPUT_TOKENS * len(manifests) * len(spec.prompts)
    parts: list[dict[str, Any]] = []
    costs: list[Decimal | None] = []
    for one in spec.forecasters:
        row = await models.find(tx, project_id, one.model)
        if row is None:
            raise Invalid("unknown_model", f"the project's catalogue has no model {one.model!r}", model=one.model)
        if one.effort is not None and one.effort not in row.spec.efforts:
            raise Invalid("unknown_effort", f"{one.model} takes no effort {one.effort!r}", efforts=row.spec.efforts)
        usd = cost_of(row.spec, TokenUsage(input_tokens=reading, output_tokens=writing), {}).usd
        costs.append(usd)
        parts.append({"forecaster": one.key, "cost_usd": None if usd is None else money(usd)})
    known = [usd for usd in costs if usd is not None]
    return {
        "tasks": len(manifests),
        "forecasts": len(manifests) * len(spec.forecasters) * len(spec.prompts),
        "input_tokens": reading * len(spec.forecasters),
        "output_tokens": writing * len(spec.forecasters),
        "cost_usd": money(sum(known, Decimal(0))) if len(known) == len(costs) else None,
        "basis": "list_price" if costs else "none",
        "parts": parts,
    }


def _reading(spec: ForecastSetSpec, shape: Template, manifests: Sequence[TaskManifest]) -> int:
    """Return input tokens of one forecaster."""
    chars = 0
    sizes: Mapping[str, int] | None = None
    for manifest in manifests:
        if sizes is None:  # what a prompt's own words take is the same for every task
            sizes = {one.key: _length(shape, one, manifest, spec) - len(manifest.instruction) for one in spec.prompts}
        chars += sum(sizes.values()) + len(manifest.instruction) * len(sizes)
    return round(chars / CHARS_PER_TOKEN)


def _length(shape: Template, prompt: ForecastPrompt, manifest: TaskManifest, spec: ForecastSetSpec) -> int:
    found = asked(shape, prompt, manifest, spec.about.text, spec.seed).question
    return len(found.system) + len(found.text)


async def _under_way(tx: Tx, row: ForecastSetRow) -> bool:
    if row.operation_id is None:
        return False
    operation = await operations.get(tx, row.project_id, row.operation_id)
    return operation is not None and operation.state not in ENDED_OPERATIONS


async def _locked(tx: Tx, project_id: str, set_id: str) -> ForecastSetRow:
    row = await forecasts.get(tx, project_id, set_id, lock=True)
    if row is None:
        raise NotFound("not_found")
    return row

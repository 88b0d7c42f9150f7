"""Forecast sets from the client's side: drawn up with an estimate, started, cancelled, filled with what was made elsewhere."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.errors import Invalid, NotFound
from service.domain.forecasts import (
    MOST_FORECASTS,
    Forecast,
    ForecastPrompt,
    ForecastSetSpec,
    ForecastState,
    ImportedForecast,
    Said,
)
from service.domain.tasks import TaskManifest
from service.lifecycle.forecasts.wording import Template, asked, template
from service.lifecycle.surveys.control import SurveyKind, chosen_tasks
from service.lifecycle.surveys.estimating import estimate
from service.store import agents, forecasts, tasks
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.forecasts import NewForecast, SetTask
from service.store.rows_forecasts import ForecastSetRow

FORECASTS = SurveyKind("forecasts", forecasts.SETS, forecasts.forget_failed)


async def draw_up(tx: Tx, blobs: BlobStore, project_id: str, spec: ForecastSetSpec, author: str) -> ForecastSetRow:
    """Fix tasks and agent and estimate; nobody is asked yet.

    Raises NotFound ``benchmark_not_found``, ``task_not_found``, ``agent_not_found``, ``overlay_not_found``, Invalid
    ``no_tasks``, ``too_many_forecasts``, ``unknown_model``, ``unknown_effort``, ``unknown_template``.
    """
    shape = template(spec.template)
    benchmark_id, chosen = await chosen_tasks(tx, project_id, spec.benchmark, spec.task_ids, spec.tasks, spec.seed)
    agent_id = await _agent(tx, project_id, spec)
    total = len(chosen) * len(spec.forecasters) * len(spec.prompts)
    if total > MOST_FORECASTS:
        raise Invalid("too_many_forecasts", f"{total} forecasts; a set has at most {MOST_FORECASTS}", forecasts=total)
    manifests = await tasks.manifests(tx, project_id, [item.task_id for item in chosen]) if total else {}
    expected = await _estimate(tx, project_id, spec, shape, list(manifests.values()))
    text = await asyncio.to_thread(blobs.store_bytes, shape.text.encode())
    values = {
        "name": spec.name, "spec": spec.model_dump(mode="json"), "benchmark_id": benchmark_id, "agent_id": agent_id,
        "template": shape.name, "total": total, "estimate": expected, "labels": dict(spec.labels), "author": author,
    }  # fmt: skip
    places = [SetTask(item.task_id, item.key if benchmark_id else None) for item in chosen]
    return await forecasts.create(tx, project_id, values, places, text)


async def start(tx: Tx, project_id: str, set_id: str, *, retry_failed: bool = False) -> ForecastSetRow:
    """Let an operation ask for what is missing; with ``retry_failed`` also for what failed. Under way already: stays so.

    Raises NotFound, Conflict ``forecasts_complete``, Invalid ``no_forecasters``.
    """
    row = await FORECASTS.locked(tx, project_id, set_id)
    if not row.spec.forecasters:
        raise Invalid("no_forecasters", "the set asks nobody: forecasts made elsewhere are imported into it")
    return await FORECASTS.start(tx, row, retry_failed=retry_failed)


async def cancel(tx: Tx, project_id: str, set_id: str) -> ForecastSetRow:
    """End a set that is not done; what was made stays. May be repeated. Raises NotFound, Conflict ``forecasts_complete``."""
    return await FORECASTS.cancel(tx, await FORECASTS.locked(tx, project_id, set_id))


async def bring(tx: Tx, project_id: str, set_id: str, rows: Sequence[ImportedForecast]) -> int:
    """Record forecasts that were made elsewhere, marked as such; return how many are new, the others stay as they are.

    Raises NotFound, Invalid ``task_not_in_set``.
    """
    row = await FORECASTS.locked(tx, project_id, set_id)
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
    questions = len(manifests) * len(spec.prompts)
    chars = _chars(spec, shape, manifests)
    found = await estimate(tx, project_id, spec.forecasters, chars=chars, questions=questions, part="forecaster")
    return {"tasks": len(manifests), "forecasts": questions * len(spec.forecasters), **found}


def _chars(spec: ForecastSetSpec, shape: Template, manifests: Sequence[TaskManifest]) -> int:
    """Return how much one forecaster reads, characters."""
    chars = 0
    sizes: Mapping[str, int] | None = None
    for manifest in manifests:
        if sizes is None:  # what a prompt's own words take is the same for every task
            sizes = {one.key: _length(shape, one, manifest, spec) - len(manifest.instruction) for one in spec.prompts}
        chars += sum(sizes.values()) + len(manifest.instruction) * len(sizes)
    return chars


def _length(shape: Template, prompt: ForecastPrompt, manifest: TaskManifest, spec: ForecastSetSpec) -> int:
    found = asked(shape, prompt, manifest, spec.about.text, spec.seed).question
    return len(found.system) + len(found.text)

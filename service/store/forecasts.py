"""Forecast sets and their forecasts: each (task, forecaster, prompt) of a set once, counted with the set."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update

from service.domain.cleaning import clean_json
from service.domain.forecasts import Forecast, ForecastState
from service.domain.ids import new_id
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.many_rows import arrays_of, insert_of_many
from service.store.paging import Sort
from service.store.rows_forecasts import ForecastRow, ForecastSetRow
from service.store.surveys import Surveys
from service.store.tables import runs
from service.store.tables_forecasts import forecast_set_tasks, forecast_sets, forecasts

OWNER = "forecast_set"
"""Kind of the owner of the blobs that forecasts name."""
SETS = Surveys(forecast_sets, ForecastSetRow.of)
Key = tuple[str, str, str]
"""Task, forecaster, prompt."""
LISTING = Listing(
    forecast_sets,
    ForecastSetRow.of,
    sorts_by(created_at=Sort(forecast_sets.c.created_at), name=Sort(forecast_sets.c.name, str)),
    {name: one_of(forecast_sets.c[name]) for name in ("state", "benchmark_id", "agent_id")},
    version=forecast_sets.c.revision,
    labels=forecast_sets.c.labels,
)
ROWS = Listing(
    forecasts,
    ForecastRow.of,
    sorts_by(created_at=Sort(forecasts.c.created_at)),
    {name: one_of(forecasts.c[name]) for name in ("set_id", "task_id", "forecaster", "prompt", "state", "source")},
)
_TASKS = ("set_id", "position", "task_id", "item_key")
_ADD_TASKS = insert_of_many(forecast_set_tasks, _TASKS)
_SAME = (
    "task_id", "forecaster", "prompt", "variant", "with_reason", "system", "model", "reported_model", "source", "asks",
    "cause", "template_sha256", "rendered_sha256", "cost_usd", "declared_at",
)  # fmt: skip
_SAID = (
    "p_hat", "context_dependence", "verifiability", "autonomy_horizon", "tool_credential_surface",
    "deliverable_modality", "reason",
)  # fmt: skip
_COLUMNS = ("id", "project_id", "set_id", "state", "usage", *_SAME, *_SAID)
_ADD = insert_of_many(
    forecasts, _COLUMNS, tail="ON CONFLICT (set_id, task_id, forecaster, prompt) DO NOTHING RETURNING id"
)


@dataclass(frozen=True, slots=True)
class SetTask:
    task_id: str
    item_key: str | None


@dataclass(frozen=True, slots=True)
class NewForecast:
    set_id: str
    project_id: str
    forecast: Forecast
    blobs: dict[str, int] = field(default_factory=dict[str, int])
    """Digest → bytes of what it names."""


async def create(
    tx: Tx, project_id: str, values: dict[str, Any], tasks: Sequence[SetTask], template: tuple[str, int]
) -> ForecastSetRow:
    """Insert a draft. ``template``: blob of its text, durable already."""
    set_id = new_id("fcs")
    row = {"id": set_id, "project_id": project_id, "template_sha256": template[0], **clean_json(values)}
    made = (await tx.execute(forecast_sets.insert().values(row).returning(forecast_sets))).mappings().one()
    places = [
        {"set_id": set_id, "position": n, "task_id": one.task_id, "item_key": one.item_key}
        for n, one in enumerate(tasks)
    ]
    await tx.execute(_ADD_TASKS, arrays_of(forecast_set_tasks, _TASKS, places))
    await add_refs(tx, project_id, OWNER, set_id, [template])
    return ForecastSetRow.of(made)


get, change, end = SETS.get, SETS.change, SETS.end


async def tasks_of(tx: Tx, set_id: str) -> list[SetTask]:
    """Return the set's tasks in their order. The caller checked the project."""
    c = forecast_set_tasks.c
    query = select(c.task_id, c.item_key).where(c.set_id == set_id).order_by(c.position)
    return [SetTask(row.task_id, row.item_key) for row in await tx.execute(query)]


async def keys(tx: Tx, set_id: str) -> set[Key]:
    """Return what is recorded. The caller checked the project."""
    c = forecasts.c
    rows = await tx.execute(select(c.task_id, c.forecaster, c.prompt).where(c.set_id == set_id))
    return {(row.task_id, row.forecaster, row.prompt) for row in rows}


async def put(tx: Tx, new: Sequence[NewForecast]) -> list[bool]:
    """Record forecasts, count them with their sets and note the blobs they name; tell which of them are new.

    What is recorded already stays as it is.
    """
    rows = [_columns(one) for one in new]
    made = {row.id for row in await tx.execute(_ADD, arrays_of(forecasts, _COLUMNS, rows))}
    fresh = [one for one, row in zip(new, rows, strict=True) if row["id"] in made]
    counts: dict[str, Counter[str]] = {}
    for one in sorted(fresh, key=lambda n: n.set_id):
        said = counts.setdefault(one.set_id, Counter())
        said[one.forecast.state] += 1
        said["imported"] += one.forecast.source == "imported"
        if one.blobs:
            await add_refs(tx, one.project_id, OWNER, one.set_id, one.blobs.items())
    for set_id, found in counts.items():
        await _count(tx, set_id, found)
    return [row["id"] in made for row in rows]


async def forget_failed(tx: Tx, set_id: str) -> int:
    """Delete the failed forecasts, so that they are asked for again. The caller holds the set."""
    query = forecasts.delete().where(forecasts.c.set_id == set_id, forecasts.c.state == ForecastState.FAILED)
    gone = (await tx.execute(query)).rowcount
    await _count(tx, set_id, Counter({ForecastState.FAILED: -gone}))
    return gone


async def first_attempts(tx: Tx, project_id: str, agent_id: str, task_ids: Collection[str]) -> dict[str, datetime]:
    """Return when the agent first began on each of these tasks; tasks that it never began are left out."""
    mine = (runs.c.project_id == project_id, runs.c.agent_id == agent_id, runs.c.started_at.is_not(None))
    query = select(runs.c.task_id, func.min(runs.c.started_at).label("at"))
    query = query.where(*mine, runs.c.task_id.in_(list(task_ids))).group_by(runs.c.task_id)
    return {row.task_id: row.at for row in await tx.execute(query)}


async def _count(tx: Tx, set_id: str, found: Counter[str]) -> None:
    c = forecast_sets.c
    values = {c[name]: c[name] + number for name, number in found.items() if number}
    if values:
        await tx.execute(
            update(forecast_sets).where(c.id == set_id).values(values | {c.updated_at: func.clock_timestamp()})
        )


def _columns(new: NewForecast) -> dict[str, Any]:
    one = new.forecast
    said = clean_json(one.columns)
    return {
        "id": new_id("fc"),
        "project_id": new.project_id,
        "set_id": new.set_id,
        "state": one.state.value,
        "usage": None if one.usage is None else one.usage.model_dump(mode="json"),
        **{name: getattr(one, name) for name in _SAME},
        **{name: said[name] for name in _SAID},
    }

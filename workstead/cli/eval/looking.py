"""``workstead eval watch``, ``list``, ``show``, ``log`` and ``matrix``."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import emit, facts, in_words, line, out
from workstead.cli.eval import options as o
from workstead.cli.eval.estimated import estimated, show_draft
from workstead.cli.eval.service import service
from workstead.cli.eval.watching import follow, holds, preflight_problems, progress
from workstead.cli.options import Json, LabelIs, Limit, pairs
from workstead.cli.tables import plain_table
from workstead.config import Connection
from workstead.models_evaluations import Evaluation
from workstead.sync import Client

MOST_COLUMNS = 8
"""Agents that are shown beside each other, task by task."""


@in_words
def watch(evaluation: o.Id, as_json: Json = False) -> None:
    """Watch an evaluation to its end, or until rules and budgets hold all that is left."""
    with service() as there:
        code = asyncio.run(_watched(there, evaluation, as_json))
    raise typer.Exit(code)


async def _watched(there: Connection, evaluation: str, as_json: bool) -> int:
    async with AsyncClient(there.url, there.token) as client:
        return await follow(client, evaluation, as_json=as_json)


@in_words
def list_(label: LabelIs = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List evaluations, newest first. With --json one object per line."""
    query = {f"label.{key}": value for key, value in pairs(label)}
    with service() as there, Client(there.url, there.token) as client:
        found = list(client.evaluations.list(query, limit=limit))
    for one in found if as_json else ():
        emit(one)
    if not as_json:
        rows = [(e.id, e.name, e.state, f"{e.of_phase('done')}/{e.total}", e.graded, e.created_at) for e in found]
        out.print(plain_table(("evaluation", "name", "state", "done", "graded", "made"), rows))


@in_words
def show(evaluation: o.Id, as_json: Json = False) -> None:
    """Show how far an evaluation is, what it spent, what holds it and when it may end."""
    with service() as there, Client(there.url, there.token) as client:
        found = client.evaluations.get(evaluation)
    if as_json:
        emit(found)
        return
    if found.state == "draft":
        show_draft(found)
        for said in preflight_problems(found):
            line(said, "red")
        return
    facts({"evaluation": found.id, "name": found.name, "state": found.state, "plan": found.plan, "notes": found.notes})
    out.print(progress(found))
    facts(_more(found))
    for said in holds(found):
        line(said, "yellow")


def _more(found: Evaluation) -> dict[str, object]:
    causes = ", ".join(f"{n} {cause}" for cause, n in sorted(found.counts.get("ended_because", {}).items()) if n)
    rate = found.throughput_per_h
    return {
        "ended because": causes,
        "estimated": estimated(found.estimate or {}).get("agents"),
        "budget": ", ".join(f"{name} {value}" for name, value in found.budget.items() if value is not None),
        "runs an hour": None if rate is None else f"{rate:.1f}",
        "revision": found.revision,
    }


@in_words
def log(evaluation: o.Id, as_json: Json = False) -> None:
    """Show who did what to an evaluation."""
    with service() as there, Client(there.url, there.token) as client:
        for entry in client.evaluations.log(evaluation):
            if as_json:
                emit(entry)
            else:
                said = ", ".join(
                    f"{name} {value}" for name, value in entry.detail.items() if value not in (None, "", [])
                )
                line(f"{entry.created_at} {entry.actor} {entry.action}: {said[:400]}")


@in_words
def matrix(evaluation: o.Id, as_json: Json = False) -> None:
    """Show the provisional table, the causes by agent, and what is slowest, dearest and silent."""
    with service() as there, Client(there.url, there.token) as client:
        found = client.evaluations.matrix(evaluation)
    if as_json:
        emit(found)
    else:
        show_matrix(found)


def show_matrix(found: Mapping[str, Any]) -> None:
    """Print the cells, and what the service made of them."""
    agents = [str(one.get("label")) for one in _rows(found.get("agents"))]
    if len(agents) <= MOST_COLUMNS:
        out.print(plain_table(("task", *agents), _grid(found, len(agents))))
    for name in ("provisional", "causes", "slowest", "dearest", "silent"):
        rows = _rows(found.get(name))
        if rows:
            columns = list(dict.fromkeys(key for row in rows for key in row))
            line(name, "bold")
            out.print(plain_table(columns, [[_said(row.get(column)) for column in columns] for row in rows]))


def _grid(found: Mapping[str, Any], agents: int) -> list[list[str | None]]:
    """Return a row per task: of each agent the mean, and how many of its runs count."""
    tasks = [str(one.get("key")) for one in _rows(found.get("tasks"))]
    grid: list[list[str | None]] = [[key, *[None] * agents] for key in tasks]
    for cell in cast("list[list[Any]]", found.get("cells") or []):
        agent, task, runs, counted, mean = cell[:5]
        if 0 <= task < len(grid) and 0 <= agent < agents:
            grid[task][agent + 1] = f"{_said(mean) or '-'} ({counted}/{runs})"
    return grid


def _rows(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict):
        named = cast("dict[str, dict[str, Any]]", found)
        return [{"agent": key, **value} for key, value in named.items() if value]
    return cast("list[dict[str, Any]]", found) if isinstance(found, list) else []


def _said(value: Any) -> str | None:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return " … ".join(_said(part) or "-" for part in cast("list[Any]", value))
    return None if value is None else str(value)

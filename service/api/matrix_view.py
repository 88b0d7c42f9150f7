"""An evaluation's cells, provisional figures and runs that stick out, as they are shown. Ids stand once: cells name positions."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.api.rendering import Timestamp, View
from service.reporting.provisional import OfTask, provisional
from service.store.evaluations.matrix import Part, StandingOut
from service.store.rows_evaluations import EvaluationRow, EvaluationTaskRow, MemberRow

CELL = ("agent", "task", "runs", "counted", "mean", "phases", "outcomes")
Interval = tuple[float, float]


class MatrixAgent(View):
    id: str
    label: str
    total: int
    hold: dict[str, Any] | None


class MatrixTask(View):
    id: str
    key: str
    """Of the benchmark's item; the task's id without a benchmark."""
    status: str


class ProvisionalRow(View):
    """One agent, of what is graded so far, as graders said it: the benchmark's policies are the report's to apply."""

    agent: str
    """Label."""
    runs: int
    n: int
    """Runs with a score that counts."""
    tasks: int
    mean: float | None
    """Of score / max_score."""
    mean_interval: Interval | None
    """95 %, tasks as the units."""
    pass_rate: float | None
    pass_interval: Interval | None
    """95 % Wilson, over runs."""


class RunOfMatrix(View):
    run_id: str
    agent: str
    task: str
    phase: str
    seconds: float | None
    """Of the agent phase so far."""
    cost_usd: str | None
    """All attempts."""
    silent_s: float | None
    """Since its last event, while it is at work."""


class Matrix(View):
    evaluation_id: str
    revision: int
    state: str
    agents: list[MatrixAgent]
    tasks: list[MatrixTask]
    columns: list[str]
    """Of a cell."""
    cells: list[list[Any]]
    """One per agent and task with runs: positions in ``agents`` and ``tasks`` from 0, runs, those that count, the mean of their
    fractions, runs by phase, runs by outcome."""
    provisional: list[ProvisionalRow]
    causes: dict[str, dict[str, int]]
    """Agent's label → ended_because → runs."""
    slowest: list[RunOfMatrix]
    dearest: list[RunOfMatrix]
    silent: list[RunOfMatrix]
    silent_after_s: float


class SeriesPoints(View):
    agent: str | None
    """Label; null: all agents together."""
    points: dict[str, list[tuple[float, float]]]
    """Metric → (seconds since ``since``, value up to then), where it changed."""


class Series(View):
    evaluation_id: str
    since: Timestamp
    step_s: float
    """Longer than was asked for where there would be too many points."""
    series: list[SeriesPoints]


def cells_of(agents: Mapping[str, int], tasks: Mapping[str, int], parts: Sequence[Part]) -> list[list[Any]]:
    """Return the cells in the order of agents, then tasks. What is of neither any more is left out."""
    found: dict[tuple[int, int], list[Any]] = {}
    for part in parts:
        agent, task = agents.get(part.agent_id), tasks.get(part.task_id)
        if agent is None or task is None:
            continue
        cell = found.get((agent, task))
        if cell is None:
            cell = found[agent, task] = [agent, task, 0, 0, None, {}, {}]
        cell[2] += part.runs
        cell[3] += part.counted
        if part.points is not None:
            cell[4] = (cell[4] or 0.0) + part.points
        cell[5][part.phase] = cell[5].get(part.phase, 0) + part.runs
        if part.outcome is not None:
            cell[6][part.outcome] = cell[6].get(part.outcome, 0) + part.runs
    for cell in found.values():
        if cell[3]:
            cell[4] = round(cell[4] / cell[3], 6)
    return [found[key] for key in sorted(found)]


def provisional_of(members: Sequence[MemberRow], parts: Sequence[Part]) -> list[dict[str, Any]]:
    sums: dict[str, dict[str, OfTask]] = {m.agent_id: {} for m in members}
    for part in parts:
        if part.counted and part.agent_id in sums:
            of_agent = sums[part.agent_id]
            so_far = of_agent.get(part.task_id, OfTask(0, 0.0, 0))
            of_agent[part.task_id] = OfTask(
                so_far.n + part.counted, so_far.points + (part.points or 0.0), so_far.passed + part.passed
            )
    rows: list[dict[str, Any]] = []
    for member in members:
        said = provisional(sums[member.agent_id].values())
        figures = {name: getattr(said, name) for name in said.__slots__}
        rows.append({"agent": member.agent_label, "runs": member.total, **figures})
    return rows


def matrix_body(
    row: EvaluationRow,
    members: Sequence[MemberRow],
    tasks: Sequence[EvaluationTaskRow],
    parts: Sequence[Part],
    listed: Sequence[StandingOut],
    silent_s: float,
) -> dict[str, Any]:
    """Return the body: it may have thousands of cells, so no model checks each of them."""
    labels = {m.agent_id: m.agent_label for m in members}
    keys = {t.task_id: t.item_key for t in tasks}
    places = {m.agent_id: i for i, m in enumerate(members)}, {t.task_id: i for i, t in enumerate(tasks)}
    standing = {
        name: [_listed(s, labels, keys) for s in listed if s.list == name] for name in ("slowest", "dearest", "silent")
    }
    return {
        "evaluation_id": row.id,
        "revision": row.revision,
        "state": row.state,
        "agents": [{"id": m.agent_id, "label": m.agent_label, "total": m.total, "hold": m.hold} for m in members],
        "tasks": [{"id": t.task_id, "key": t.item_key, "status": t.status} for t in tasks],
        "columns": [*CELL],
        "cells": cells_of(*places, parts),
        "provisional": provisional_of(members, parts),
        "causes": {m.agent_label: _causes(m) for m in members},
        **standing,
        "silent_after_s": silent_s,
    }


def _causes(member: MemberRow) -> dict[str, int]:
    return {cause: n for cause, n in (member.counts.get("ended_because") or {}).items() if n > 0}


def _listed(run: StandingOut, labels: Mapping[str, str], keys: Mapping[str, str]) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "agent": labels.get(run.agent_id, run.agent_id),
        "task": keys.get(run.task_id, run.task_id),
        "phase": run.phase,
        "seconds": run.seconds,
        "cost_usd": None if run.cost_usd is None else f"{run.cost_usd.normalize():f}",
        "silent_s": run.silent_s,
    }

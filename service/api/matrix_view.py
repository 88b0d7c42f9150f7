"""An evaluation's cells, provisional figures and runs that stick out, as they are shown. Ids stand once: cells name positions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from service.api.rendering import Timestamp, View
from service.reporting.provisional import Sums, provisional
from service.store.evaluations.matrix import AgentRow, StandingOut
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


def matrix_body(
    row: EvaluationRow,
    members: Sequence[MemberRow],
    tasks: Sequence[EvaluationTaskRow],
    rows: Sequence[AgentRow],
    listed: Sequence[StandingOut],
    silent_s: float,
) -> bytes:
    """Return the body: it may have thousands of cells, so they are put into it as the database wrote them."""
    labels = {m.agent_id: m.agent_label for m in members}
    keys = {t.task_id: t.item_key for t in tasks}
    body = {
        "evaluation_id": row.id,
        "revision": row.revision,
        "state": row.state,
        "agents": [{"id": m.agent_id, "label": m.agent_label, "total": m.total, "hold": m.hold} for m in members],
        "tasks": [{"id": t.task_id, "key": t.item_key, "status": t.status} for t in tasks],
        "columns": [*CELL],
        "provisional": _provisional(members, rows),
        "causes": {m.agent_label: _causes(m) for m in members},
        **{
            name: [_listed(s, labels, keys) for s in listed if s.list == name]
            for name in ("slowest", "dearest", "silent")
        },
        "silent_after_s": silent_s,
    }
    cells = ",".join(one.cells for one in rows)
    whole = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return f'{whole[:-1]},"cells":[{cells}]}}'.encode()


def _provisional(members: Sequence[MemberRow], rows: Sequence[AgentRow]) -> list[dict[str, Any]]:
    of = {one.agent_id: one for one in rows}
    found: list[dict[str, Any]] = []
    for member in members:
        said = provisional(_sums(of.get(member.agent_id)))
        figures = {name: getattr(said, name) for name in said.__slots__}
        found.append({"agent": member.agent_label, "runs": member.total, **figures})
    return found


def _sums(row: AgentRow | None) -> Sums:
    if row is None or not row.counted:
        return Sums(0, 0, 0.0, 0, 0.0, 0.0, 0.0)
    by_n, squared = row.points_by_counted or 0.0, row.points_squared or 0.0
    return Sums(row.counted, row.tasks, row.points or 0.0, row.passed, squared, by_n, row.counted_squared or 0.0)


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

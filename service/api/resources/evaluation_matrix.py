"""``/v1/evaluations/{id}/matrix`` and ``…/series``: what a lead watches (NEEDS B11, D10)."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import RunsRead, State
from service.api.conditional import none_match
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED
from service.api.lookups import evaluation_or_404
from service.api.matrix_view import Matrix, Series, SeriesPoints, matrix_body
from service.api.prefixed import only_known
from service.api.rendering import answer, json_answer
from service.domain.errors import Invalid
from service.store.evaluations import matrix, members, series
from service.store.evaluations.matrix import Fingerprint
from service.store.evaluations.series import Step
from service.store.rows_evaluations import EvaluationRow

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"], route_class=StrictRoute)
MOST_POINTS = 1_000
"""Of one metric of one agent."""
_LISTS_LAST_S = 15
"""While runs are at work, the lists of slow and silent ones change by themselves."""
Metrics = Annotated[str, Query(max_length=100)]


@dataclass
class _Sums:
    """Up to one step."""

    done: float = 0
    graded: float = 0
    earned_usd: float = 0
    spend_usd: float = 0
    points: float = 0
    counted: int = 0

    def add(self, step: Step) -> None:
        self.done += step.done
        self.graded += step.graded
        self.earned_usd += float(step.earned_usd)
        self.spend_usd += float(step.spend_usd)
        self.points += step.points
        self.counted += step.counted

    @property
    def score(self) -> float | None:
        return self.points / self.counted if self.counted else None


_METRICS = ("done", "graded", "earned_usd", "spend_usd", "score")


@router.get("/{evaluation_id}/matrix", operation_id="get_evaluation_matrix", response_model=Matrix, responses=UNCHANGED)
async def get_matrix(
    evaluation_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    silent_s: Annotated[float, Query(ge=1, le=86_400)] = 600,
) -> Response:
    """Return agents by tasks, the provisional table, causes by agent, and the slowest, dearest and silent runs.

    ``silent_s``: a run at work is silent after so many seconds without an event. The ETag changes with every run.
    """
    only_known(request, ("silent_s",), ())
    async with state.db.snapshot() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id)
        known = request.headers.get("if-none-match")
        if known is not None:
            headers = _headers(row, await matrix.fingerprint(tx, evaluation_id), silent_s)
            if none_match(known, headers["ETag"]):
                return Response(status_code=304, headers=headers)
        agents, tasks = await members.agents_of(tx, evaluation_id), await members.tasks_of(tx, evaluation_id)
        rows = await matrix.agent_rows(tx, evaluation_id)
        listed = await matrix.standing_out(tx, evaluation_id, silent_s)
    headers = _headers(row, matrix.fingerprint_of(rows), silent_s)
    return json_answer(matrix_body(row, agents, tasks, rows, listed, silent_s), headers=headers)


def _headers(row: EvaluationRow, runs: Fingerprint, silent_s: float) -> dict[str, str]:
    turn = int(time.time() / _LISTS_LAST_S) if runs.at_work else 0
    tag = f'"{row.revision}-{runs.runs}-{runs.revisions}-{silent_s:g}-{turn}"'
    return {"ETag": tag, "Cache-Control": "private, max-age=5"}


@router.get("/{evaluation_id}/series", operation_id="get_evaluation_series", response_model=Series)
async def get_series(
    evaluation_id: str,
    request: Request,
    caller: RunsRead,
    state: State,
    metric: Metrics = "done",
    by: Literal["agent", "all"] = "all",
    step_s: Annotated[float, Query(ge=1, le=86_400)] = 60,
) -> Response:
    """Return figures as they grew. ``metric``: done, graded, earned_usd, spend_usd, score, separated by commas.

    Each run counts from when it was done; ``score`` is the mean fraction of those with one up to then; ``earned_usd`` the prices of
    the tasks of runs with full points. At most 1 000 points each: where there would be more, the step is longer.
    """
    only_known(request, ("metric", "by", "step_s"), ())
    wanted = _metrics(metric)
    async with state.db.snapshot() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id)
        began = row.started_at or row.created_at
        last = await series.last_change(tx, evaluation_id)
        step = _step(step_s, 0.0 if last is None else (last - began).total_seconds())
        found = await series.steps(tx, evaluation_id, began, step, by_agent=by == "agent")
        labels = {m.agent_id: m.agent_label for m in await members.agents_of(tx, evaluation_id)}
    data = [_points(labels, of, steps, wanted, step) for of, steps in _by_agent(found)]
    return answer(Series(evaluation_id=evaluation_id, since=began, step_s=step, series=data))


def _metrics(metric: str) -> list[str]:
    wanted = [*dict.fromkeys(name for name in metric.split(",") if name)]
    unknown = [name for name in wanted if name not in _METRICS]
    if unknown or not wanted:
        raise Invalid("unknown_metric", f"there is no metric {(unknown or [''])[0]!r}", known=[*_METRICS])
    return wanted


def _step(wanted: float, span_s: float) -> float:
    """Return whole multiples of what was asked for."""
    return wanted * max(1, math.ceil((span_s + wanted) / (wanted * MOST_POINTS)))


def _by_agent(steps: Iterable[Step]) -> list[tuple[str | None, list[Step]]]:
    found: dict[str | None, list[Step]] = {}
    for step in steps:
        found.setdefault(step.agent_id, []).append(step)
    return [*found.items()]


def _points(
    labels: Mapping[str, str], of: str | None, steps: Sequence[Step], wanted: Sequence[str], step_s: float
) -> SeriesPoints:
    points = {name: _grown(steps, name, step_s) for name in wanted}
    return SeriesPoints(agent=None if of is None else labels.get(of, of), points=points)


def _grown(steps: Sequence[Step], name: str, step_s: float) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    sums = _Sums()
    for step in steps:
        sums.add(step)
        value: float | None = getattr(sums, name)
        if value is not None and (not found or found[-1][1] != value):
            found.append(((step.step + 1) * step_s, round(value, 10)))
    return found

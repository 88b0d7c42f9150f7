"""Two gradings of the same deliverables side by side: the primary plan and each plan beside it (JobBench, Fig. 5b-c)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
import polars as pl

from service.domain.reports import ReportColumn, ReportTable
from service.reporting.agreement import agreement, cohen_kappa
from service.reporting.intervals import Rows, cluster_ratios
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, Run, by_task
from service.reporting.reports.making import AGENT, BOOTSTRAP, Row, bounds, common, count, fraction, table, usd

ALL = "all agents"


@dataclass(frozen=True, slots=True)
class _Side:
    """One plan's gradings."""

    fractions: dict[str, float]
    """Run → sum of points / sum of points that could be had."""
    criteria: pl.DataFrame
    costs: dict[str, float]
    """Run → dollars of the judges; unknown ones are not there."""


def judges_beside(data: Data) -> list[ReportTable]:
    """Return one table for each plan beside the primary one."""
    own = _side(data, gradings.standing(data)) if data.settings.plans_beside else None
    return [
        _table(data, own, _side(data, gradings.standing(data, plan)), plan, n)
        for n, plan in enumerate(data.settings.plans_beside, 1)
        if own is not None
    ]


def _side(data: Data, verdicts: pl.DataFrame) -> _Side:
    sums = verdicts.group_by("run_id").agg(
        pl.col("score").sum(),
        pl.col("max_score").sum(),
        pl.col("cost_usd").sum(),
        pl.col("cost_usd").is_null().any().alias("unknown"),
    )
    rows = list(sums.select("run_id", "score", "max_score", "cost_usd", "unknown").iter_rows())
    return _Side(
        {run: score / most for run, score, most, _, _ in rows if most},
        gradings.finest_of(data, verdicts),
        {run: cost for run, _, _, cost, unknown in rows if not unknown},
    )


def _table(data: Data, own: _Side, other: _Side, plan: str, n: int) -> ReportTable:
    runs = [r for r in data.counted if r.run_id in own.fractions and r.run_id in other.fractions]
    both = own.criteria.join(other.criteria, on=["run_id", "criterion"], how="inner", suffix="_beside")
    parts = [(ALL, runs), *((a.label, [r for r in runs if r.agent_id == i]) for i, a in data.agents.items())]
    rows = [_row(data, label, part, own, other, both) for label, part in parts]
    columns = [
        AGENT,
        count("runs", "Graded by both"),
        fraction("before", "Primary plan"),
        fraction("beside", plan),
        fraction("difference", "Beside less primary", interval=True),
        fraction("agreement", "Agree on who solved it"),
        ReportColumn(name="kappa", title="Cohen's kappa of solved"),
        count("criteria", "Criteria of both"),
        fraction("criteria_agreement", "Agree on a criterion"),
        ReportColumn(name="criteria_kappa", title="Cohen's kappa of criteria"),
        usd("cost_usd", "Judges, primary"),
        usd("cost_beside_usd", "Judges, beside"),
    ]
    method = (
        "Of each run, the sum of points over the sum of points to be had under each plan; its solved is full score. Kappa: Cohen "
        f"(1960), null where one label was given throughout. Means over tasks. {BOOTSTRAP}"
    )
    left = {"not graded by both": len(data.counted) - len(runs)} if len(data.counted) > len(runs) else {}
    settings = common(data, plan=data.header.plan, beside=plan)
    title = f"Judges side by side: {plan}"
    excluded = {**data.excluded, **left}
    return table(
        data,
        f"judge_comparison_{n}",
        title,
        columns,
        rows,
        n=len(runs),
        excluded=excluded,
        method=method,
        settings=settings,
    )


def _row(data: Data, label: str, runs: Sequence[Run], own: _Side, other: _Side, both: pl.DataFrame) -> Row:
    before, after = (by_task(runs, lambda r, s=s: s.fractions[r.run_id]) for s in (own, other))
    solved = [(own.fractions[r.run_id] >= 1, other.fractions[r.run_id] >= 1) for r in runs]
    mine = both.filter(pl.col("run_id").is_in([r.run_id for r in runs]))
    first, second = mine["passed"].to_list(), mine["passed_beside"].to_list()
    steps = [after[t] - before[t] for t in before]
    shift = cluster_ratios(Rows(np.asarray([steps]), np.ones((1, len(steps)))), data.seed, data.settings.draws)[0]
    return {
        "agent": label,
        "runs": len(runs),
        "before": _mean(list(before.values())),
        "beside": _mean(list(after.values())),
        "difference": _mean(steps),
        **bounds("difference", shift),
        "agreement": agreement([a for a, _ in solved], [b for _, b in solved]),
        "kappa": cohen_kappa([a for a, _ in solved], [b for _, b in solved]),
        "criteria": len(first),
        "criteria_agreement": agreement(first, second),
        "criteria_kappa": cohen_kappa(first, second),
        "cost_usd": _cost(own, runs),
        "cost_beside_usd": _cost(other, runs),
    }


def _cost(side: _Side, runs: Sequence[Run]) -> float | None:
    known = [side.costs[r.run_id] for r in runs if r.run_id in side.costs]
    return fsum(known) if len(known) == len(runs) and runs else None


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None

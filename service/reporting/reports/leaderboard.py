"""The leaderboard of JobBench in the layout of its site: percent with two decimals, a breakdown by occupation."""

from collections.abc import Sequence
from typing import Any

from service.domain.reports import ReportHeader, ReportSettings
from service.reporting.frames import Tables
from service.reporting.reports import gradings
from service.reporting.reports.data import Agent, Data, gather
from service.reporting.reports.jobbench_options import JobBenchOptions
from service.reporting.reports.making import options
from service.reporting.reports.scores import Scores
from service.reporting.rubric_scores import RubricScores

NOT_NAMED = "Other"


def jobbench_leaderboard(tables: Tables, header: ReportHeader, settings: ReportSettings) -> dict[str, Any]:
    """Return the document. Option ``aggregate`` decides what ranks: the site's own is ``micro``, the paper's ``macro``.

    Raises Invalid for an option that does not fit.
    """
    chosen = options(JobBenchOptions, settings.options)
    data = gather(tables, header, settings)
    scores = Scores(data)
    rows = [_row(data, scores, agent, chosen) for agent in data.agents]
    rows.sort(key=lambda row: (-(row["overallScore"] or -1.0), row["displayName"]))
    for row in rows:
        better = sum((other["overallScore"] or -1.0) > (row["overallScore"] or -1.0) for other in rows)
        row["rank"] = better + 1
    return {
        "leaderboard": rows,
        "totalTasks": len(data.attempted),
        "totalModels": len({a.model or a.label for a in data.agents.values()}),
        **_totals(data, scores),
        "aggregate": chosen.aggregate,
        "missing": data.missing,
        "plan": header.plan,
        "notice": header.notice,
    }


def _row(data: Data, scores: Scores, agent_id: str, chosen: JobBenchOptions) -> dict[str, Any]:
    agent = data.agents[agent_id]
    figures = scores.figures(agent_id, data.attempted)
    return {
        "rank": 0,
        "model": agent.model or agent.label,
        "displayName": agent.label,
        "family": _family(agent),
        "framework": agent.scaffold_name,
        "overallScore": _percent(figures.macro if chosen.aggregate == "macro" else figures.micro),
        "totalScore": round(figures.earned, 4),
        "maxScore": _rounded(figures.possible),
        "tasksEvaluated": figures.done,
        "rubricsPassed": _rounded(figures.rubrics_passed),
        "rubricsTotal": _rounded(figures.rubrics),
        "rubricPassRate": _percent(figures.rubric_pass_rate),
        "categoryBreakdown": {
            name: _part(scores.figures(agent_id, tasks), chosen)
            for name, tasks in _occupations(data, chosen.occupation_facet).items()
        },
    }


def _part(figures: RubricScores, chosen: JobBenchOptions) -> dict[str, Any]:
    return {
        "score": round(figures.earned, 4),
        "max_score": _rounded(figures.possible),
        "score_pct": _percent(figures.macro if chosen.aggregate == "macro" else figures.micro),
        "tasks_evaluated": figures.done,
        "rubrics_passed": _rounded(figures.rubrics_passed),
        "rubrics_total": _rounded(figures.rubrics),
    }


def _occupations(data: Data, facet: str) -> dict[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for task in data.attempted:
        for name in data.tasks[task].values(facet) or [NOT_NAMED]:
            found.setdefault(name, []).append(task)
    return {name: found[name] for name in sorted(found)}


def _totals(data: Data, scores: Scores) -> dict[str, Any]:
    tasks = {r.run_id: r.task_id for r in data.runs}
    criteria = {(tasks[run], criterion) for run, criterion, _ in gradings.finest(data).iter_rows() if run in tasks}
    expected = [value for value in scores.known_rubrics(data.attempted) if value is not None]
    return {"totalRubrics": _rounded(sum(expected)), "totalCriteria": len(criteria)}


def _family(agent: Agent) -> str:
    return agent.family or agent.vendor or NOT_NAMED


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _rounded(value: float | None) -> float | int | None:
    """Return a whole number as one: means over samples need not be."""
    if value is None:
        return None
    return int(value) if float(value).is_integer() else round(value, 4)

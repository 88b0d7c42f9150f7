"""Weighted scores of agents as tables: overall and by group, and one agent per model."""

from collections.abc import Sequence

from service.domain.reports import ReportColumn, ReportTable
from service.reporting.reports import choices
from service.reporting.reports.choices import BestScaffold
from service.reporting.reports.data import Data
from service.reporting.reports.groups import Group, grouping, groups
from service.reporting.reports.making import AGENT, BOOTSTRAP, Row, bounds, common, count, fraction, table
from service.reporting.reports.scores import Scores


def categories(data: Data, scores: Scores) -> ReportTable:
    """Return the paper's Table 3: overall and by category, with the site's aggregate beside it."""
    by = grouping(data)
    parts = groups(data, by, data.attempted) if by else []
    rows = _score_rows(data, scores, list(data.agents), data.attempted, parts)
    method = (
        "Macro: mean over tasks of earned / possible weight. Micro: sum earned / sum possible. Rubrics: passed / all, unweighted. "
        "Columns by category are macro. A task that the agent has no run of counts as the policy `missing` says. "
        + BOOTSTRAP
    )
    settings = common(data, missing=data.missing, grouping=by.name if by else None, merges=by.merges if by else {})
    notes = _unknown(rows) + ([] if by else ["The benchmark names no grouping: there are no columns by category."])
    return table(
        data,
        "jobbench_scores",
        "Scores by category",
        _columns(parts),
        rows,
        method=method,
        settings=settings,
        notes=notes,
        plot={"mark": "bar", "x": "agent", "y": "macro"},
    )


def _score_rows(
    data: Data, scores: Scores, agents: Sequence[str], tasks: Sequence[str], parts: Sequence[Group]
) -> list[Row]:
    overall = scores.intervals(agents, tasks)
    by_part = {part.key: scores.intervals(agents, part.tasks) for part in parts}
    rows: list[Row] = []
    for agent in agents:
        figures = scores.figures(agent, tasks)
        row: Row = {
            "agent": data.agents[agent].label,
            "tasks": figures.tasks,
            "missing": figures.missing,
            "macro": figures.macro,
            **bounds("macro", overall[agent]),
            "micro": figures.micro,
            "rubric_pass_rate": figures.rubric_pass_rate,
        }
        for part in parts:
            row |= {part.key: scores.figures(agent, part.tasks).macro, **bounds(part.key, by_part[part.key][agent])}
        rows.append(row)
    return sorted(rows, key=lambda row: (-(_number(row["macro"])), str(row["agent"])))


def _columns(parts: Sequence[Group]) -> list[ReportColumn]:
    fixed = [
        AGENT,
        count("tasks", "Tasks"),
        count("missing", "Missing"),
        fraction("macro", "Overall (macro)", interval=True),
        fraction("micro", "Overall (micro)"),
        fraction("rubric_pass_rate", "Rubrics passed"),
    ]
    return [*fixed, *(fraction(p.key, f"{p.name} ({len(p.tasks)})", interval=True) for p in parts)]


def main_table(data: Data, scores: Scores, choice: BestScaffold) -> ReportTable:
    """Return one agent per model, by the reader's rule."""
    chosen, tasks = choices.chosen(data, scores, choice)
    wanted = set(chosen.agents)
    agents = [a for a, agent in data.agents.items() if agent.label in wanted]
    rows = _score_rows(data, scores, agents, tasks, [])
    n = sum(r.agent_id in set(agents) and r.task_id in set(tasks) for r in data.counted)
    left = choices.reasons(chosen)
    method = f"One agent per model: {chosen.rule}. Figures as in the table of all agents. {BOOTSTRAP}"
    settings = common(data, missing=data.missing, **choice.model_dump())
    return table(
        data,
        "main_table",
        "One scaffold per model",
        _columns([]),
        rows,
        n=n,
        excluded=left,
        method=method,
        settings=settings,
    )


def _unknown(rows: Sequence[Row]) -> list[str]:
    without = [str(row["agent"]) for row in rows if row["micro"] is None]
    return (
        [
            f"Micro is undefined for {', '.join(without[:20])}: a missing task's weight is not known, or the policy refuses."
        ]
        if without
        else []
    )


def _number(cell: object) -> float:
    return float(cell) if isinstance(cell, int | float) else -1.0

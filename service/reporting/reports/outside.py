"""Scores per group beside a reader's own figures (JobBench, Fig. 7: desire and capability)."""

from math import fsum

from service.domain.errors import Invalid
from service.domain.reports import ReportColumn, ReportTable
from service.reporting.covariates import joined, read_covariates
from service.reporting.reports.data import Data
from service.reporting.reports.jobbench_options import JobBenchOptions
from service.reporting.reports.making import Row, count, fraction, table
from service.reporting.reports.scores import Scores


def covariate(data: Data, scores: Scores, chosen: JobBenchOptions) -> ReportTable:
    """Return each group with its score, its number and its quadrant. Raises Invalid ``invalid_option`` for CSV that is none."""
    try:
        values = read_covariates(chosen.covariates or "")
    except ValueError as error:
        raise Invalid("invalid_option", f"options.covariates: {error}") from error
    found = joined(_means(data, scores, chosen.covariate_facet), values)
    rows: list[Row] = [
        {
            "group": r.group,
            "score": r.score,
            "value": r.value,
            "quadrant": r.quadrant,
            "tasks": _tasks(data, chosen, r.group),
        }
        for r in found.rows
    ]
    columns = [
        ReportColumn(name="group", title=chosen.covariate_facet),
        count("tasks", "Tasks"),
        fraction("score", "Mean score of all agents"),
        ReportColumn(name="value", title="Covariate"),
        ReportColumn(name="quadrant", title="Score / covariate"),
    ]
    pearson = "undefined" if found.pearson is None else f"{found.pearson:.3f}"
    notes = [f"Pearson's r over {len(rows)} groups: {pearson}."]
    excluded = {"no covariate": len(found.scores_alone), "no score": len(found.values_alone)}
    settings = {"facet": chosen.covariate_facet, "pearson": found.pearson, "median_score": found.median_score}
    settings["median_value"] = found.median_value
    return table(
        data,
        "covariate",
        "Score against an outside figure",
        columns,
        rows,
        n=len(rows),
        unit="groups",
        excluded={reason: n for reason, n in excluded.items() if n},
        method="Mean over agents of their macro score on the group's tasks; quadrants by the medians, which count as high.",
        settings=settings,
        notes=notes,
        plot={"mark": "point", "x": "value", "y": "score", "color": "quadrant"},
    )


def _means(data: Data, scores: Scores, facet: str) -> dict[str, float]:
    members: dict[str, list[str]] = {}
    for task in data.attempted:
        for value in data.tasks[task].values(facet):
            members.setdefault(value, []).append(task)
    found: dict[str, float] = {}
    for group, tasks in members.items():
        values = [v for agent in data.agents if (v := scores.figures(agent, tasks).macro) is not None]
        if values:
            found[group] = fsum(values) / len(values)
    return found


def _tasks(data: Data, chosen: JobBenchOptions, group: str) -> int:
    return sum(group in data.tasks[t].values(chosen.covariate_facet) for t in data.attempted)

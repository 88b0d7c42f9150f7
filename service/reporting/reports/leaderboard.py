"""The leaderboard of JobBench in the layout of its site: percent with two decimals, a breakdown by occupation."""

import polars as pl

from service.domain.leaderboards import Leaderboard, LeaderboardPart, LeaderboardRow
from service.domain.reports import ReportHeader, ReportSettings
from service.reporting.frames import Tables
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, gather
from service.reporting.reports.jobbench_options import JobBenchOptions
from service.reporting.reports.making import options
from service.reporting.reports.scores import Scores
from service.reporting.rubric_scores import RubricScores

NOT_NAMED = "Other"
_RUNS = {"run_id": pl.String, "task_id": pl.String}


def jobbench_leaderboard(tables: Tables, header: ReportHeader, settings: ReportSettings) -> Leaderboard:
    """Return the document. Option ``aggregate`` decides what ranks: the site's own is ``micro``, the paper's ``macro``.

    Raises Invalid for an option that does not fit.
    """
    chosen = options(JobBenchOptions, settings.options)
    data = gather(tables, header, settings)
    scores = Scores(data)
    rows = [_row(data, scores, agent, chosen) for agent in data.agents]
    shown = [-1.0 if row.overallScore is None else row.overallScore for row in rows]
    ranked = [
        row.model_copy(update={"rank": 1 + sum(other > mine for other in shown)})
        for row, mine in zip(rows, shown, strict=True)
    ]
    return Leaderboard(
        leaderboard=sorted(ranked, key=lambda row: (row.rank, row.displayName)),
        totalTasks=len(data.attempted),
        totalModels=len({a.model or a.label for a in data.agents.values()}),
        totalRubrics=sum(n for n in scores.known_rubrics(data.attempted) if n is not None),
        totalCriteria=_criteria(data),
        aggregate=chosen.aggregate,
        missing=data.missing,
        plan=header.plan,
        notice=header.notice,
    )


def _row(data: Data, scores: Scores, agent_id: str, chosen: JobBenchOptions) -> LeaderboardRow:
    agent = data.agents[agent_id]
    figures = scores.figures(agent_id, data.attempted)
    occupations = _occupations(data, chosen.occupation_facet)
    return LeaderboardRow(
        rank=0,
        model=agent.model or agent.label,
        displayName=agent.label,
        family=agent.family or agent.vendor or NOT_NAMED,
        framework=agent.scaffold_name,
        overallScore=_percent(figures, chosen),
        totalScore=round(figures.earned, 4),
        maxScore=_rounded(figures.possible),
        tasksEvaluated=figures.done,
        rubricsPassed=round(figures.rubrics_passed, 4),
        rubricsTotal=_rounded(figures.rubrics),
        rubricPassRate=None if figures.rubric_pass_rate is None else round(100 * figures.rubric_pass_rate, 2),
        categoryBreakdown={name: _part(scores.figures(agent_id, tasks), chosen) for name, tasks in occupations.items()},
    )


def _part(figures: RubricScores, chosen: JobBenchOptions) -> LeaderboardPart:
    return LeaderboardPart(
        score=round(figures.earned, 4),
        max_score=_rounded(figures.possible),
        score_pct=_percent(figures, chosen),
        tasks_evaluated=figures.done,
        rubrics_passed=round(figures.rubrics_passed, 4),
        rubrics_total=_rounded(figures.rubrics),
    )


def _occupations(data: Data, facet: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task in data.attempted:
        for name in data.tasks[task].values(facet) or [NOT_NAMED]:
            found.setdefault(name, []).append(task)
    return {name: found[name] for name in sorted(found)}


def _criteria(data: Data) -> int:
    """Return how many criteria the tasks have, as far as a graded run shows them."""
    runs = pl.DataFrame([(r.run_id, r.task_id) for r in data.runs], schema=_RUNS, orient="row")
    return gradings.finest(data).join(runs, on="run_id").select("task_id", "criterion").unique().height


def _percent(figures: RubricScores, chosen: JobBenchOptions) -> float | None:
    value = figures.macro if chosen.aggregate == "macro" else figures.micro
    return None if value is None else round(100 * value, 2)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)

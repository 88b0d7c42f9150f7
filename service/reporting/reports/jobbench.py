"""The report of JobBench: scores by category, complexity, judges side by side, cost, effort, scaffolds, union of runs."""

import polars as pl

from service.domain.reports import ReportHeader, ReportSettings, ReportTable
from service.reporting import pass_at_k
from service.reporting.frames import Tables
from service.reporting.reports import gradings
from service.reporting.reports.complexities import complexity
from service.reporting.reports.data import Data, gather
from service.reporting.reports.jobbench_options import JobBenchOptions
from service.reporting.reports.judges import judges_beside
from service.reporting.reports.making import Row, count, fraction, options, table
from service.reporting.reports.outside import covariate
from service.reporting.reports.overview import exclusions, failure_causes
from service.reporting.reports.score_tables import categories, main_table
from service.reporting.reports.scores import Scores
from service.reporting.reports.spending import cost_against_score, effort_sweep, scaffold_table

_RUNS = {"run_id": pl.String, "task_id": pl.String}


def jobbench(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ReportTable]:
    """Return the tables of JobBench's paper, sections 3 and 4. Raises Invalid for a grouping or an option that does not fit."""
    chosen = options(JobBenchOptions, settings.options)
    data = gather(tables, header, settings)
    scores = Scores(data)
    scored = scores.scored(data.attempted)
    found = [
        categories(data, scores),
        complexity(data, chosen),
        cost_against_score(data, scored),
        effort_sweep(data, scored),
        scaffold_table(data, scored),
        union(data),
        *judges_beside(data),
    ]
    if chosen.best_scaffold is not None:
        found.insert(1, main_table(data, scores, chosen.best_scaffold))
    if chosen.covariates is not None:
        found.append(covariate(data, scores, chosen))
    return [*found, failure_causes(data), exclusions(data)]


def union(data: Data) -> ReportTable:
    """Return how many criteria any run of any agent passed (section 2.3: 95.4 % in the paper)."""
    runs = pl.DataFrame([(r.run_id, r.task_id) for r in data.counted], schema=_RUNS, orient="row")
    found = pass_at_k.union_of(gradings.finest(data).join(runs, on="run_id"))
    row: Row = {"criteria": found.criteria, "passed": found.passed, "rate": found.rate}
    columns = [count("criteria", "Criteria"), count("passed", "Passed by a run"), fraction("rate", "Rate")]
    method = "Criteria that at least one counted run passed, of all criteria of tasks with a graded run."
    return table(data, "union_pass_rate", "Union of all runs", columns, [row], method=method)

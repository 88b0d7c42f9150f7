"""Which gradings stand behind the runs' scores, and what is in them."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from service.reporting.reports.data import Data

RUBRIC_PART = r"\.c\d+$"
"""Criteria of a rubric are named after it; a method's other rows are scored as they are."""


def standing(data: Data, plan: str | None = None) -> pl.DataFrame:
    """Return the graded verdicts that count: primary, of the run's own plan or of ``plan``, each method's last round.

    ``plan`` is ``name@version``, or a name: then its newest version of each run.
    """
    verdicts = data.tables["verdicts"].filter(pl.col("state") == "graded", pl.col("primary"))
    if plan is None:
        own = data.tables["runs"].select("run_id", "plan")
        verdicts = verdicts.join(own, on=["run_id", "plan"], how="semi")
    else:
        mine = pl.col("plan") == plan if "@" in plan else pl.col("plan").str.starts_with(f"{plan}@")
        verdicts = verdicts.filter(mine)
    last = verdicts.group_by("run_id", "method", "settings_digest").agg(pl.col("round").max())
    return verdicts.join(last, on=["run_id", "method", "settings_digest", "round"], how="semi").sort("grading_id")


def of_method(method: str) -> pl.Expr:
    return pl.col("method") == method


@dataclass(frozen=True, slots=True)
class Passed:
    passed: int
    total: int


def rubrics(data: Data) -> Mapping[str, Passed]:
    """Return, for each run, how many rubrics (of other methods: scored items) passed."""
    return _counted(_rows(data).filter(~pl.col("criterion").str.contains(RUBRIC_PART)))


def tests(data: Data, method: str) -> Mapping[str, Passed]:
    """Return, for each run, how many items of ``method`` passed."""
    mine = standing(data).filter(of_method(method)).select("grading_id")
    return _counted(data.tables["criteria"].join(mine, on="grading_id", how="semi"))


def finest(data: Data) -> pl.DataFrame:
    """Return ``run_id, criterion, passed`` of the finest items: a rubric's criteria where it has some, else items themselves."""
    return _finest(_rows(data))


def finest_of(data: Data, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the same of the gradings given."""
    return _finest(data.tables["criteria"].join(verdicts.select("grading_id"), on="grading_id", how="semi"))


def _rows(data: Data) -> pl.DataFrame:
    return data.tables["criteria"].join(standing(data).select("grading_id"), on="grading_id", how="semi")


def _finest(rows: pl.DataFrame) -> pl.DataFrame:
    part = pl.col("criterion").str.contains(RUBRIC_PART)
    parents = rows.filter(part).select("grading_id", pl.col("criterion").str.replace(RUBRIC_PART, "")).unique()
    return (
        rows.join(parents, on=["grading_id", "criterion"], how="anti")
        .filter(pl.col("passed").is_not_null())
        .select("run_id", "criterion", "passed")
    )


def _counted(rows: pl.DataFrame) -> dict[str, Passed]:
    counts = rows.group_by("run_id").agg(
        pl.col("passed").fill_null(value=False).sum().alias("yes"), pl.len().alias("n")
    )
    return {run: Passed(int(yes), int(n)) for run, yes, n in counts.select("run_id", "yes", "n").iter_rows()}


def failed(data: Data) -> pl.DataFrame:
    """Return ``run_id, detail`` of the items that the standing gradings failed and that carry a detail with a cause."""
    wrong = _rows(data).filter(~pl.col("passed").fill_null(value=True))
    return wrong.select("run_id", "detail").filter(pl.col("detail").str.contains('"cause"', literal=True))

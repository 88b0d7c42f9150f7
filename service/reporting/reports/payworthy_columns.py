"""What is known of PayWorthy's jobs beforehand, as columns of regressions: category, metadata, annotations, the text."""

import json
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import polars as pl

from service.reporting import baselines
from service.reporting.drawing import Floats
from service.reporting.reports.payworthy_jobs import UNKNOWN, Forecasts, Jobs, PayWorthyOptions

Columns = dict[str, Floats]
ANNOTATIONS = (
    "context_dependence", "verifiability", "autonomy_horizon", "tool_credential_surface", "deliverable_modality",
)  # fmt: skip


def categories(jobs: Jobs, options: PayWorthyOptions) -> Columns:
    return baselines.dummies(jobs.groups(options.category_facet), "category")


def metadata(jobs: Jobs, options: PayWorthyOptions) -> Columns:
    found = prices(jobs)
    for name in (options.pay_facet, "duration", "expertise"):
        values = jobs.groups(name)
        if set(values) != {UNKNOWN}:
            found |= baselines.dummies(values, name)
    return found


def prices(jobs: Jobs) -> Columns:
    if np.isnan(jobs.worth).all():
        return {}
    return baselines.numbers([None if np.isnan(w) else float(np.log10(max(w, 1.0))) for w in jobs.worth], "log10 price")


def annotations(one: Forecasts) -> Columns:
    """Return the mean of each annotation over a job's forecasts; jobs without any get the mean of all."""
    rows = one.rows.filter(pl.col("state") == "ok")
    found: Columns = {}
    for name in ANNOTATIONS:
        means = dict(rows.filter(pl.col(name).is_not_null()).group_by("task_id").agg(pl.col(name).mean()).iter_rows())
        if means:
            found |= baselines.numbers([means.get(task) for task in one.jobs.tasks], name)
    return found


def facets(jobs: Jobs, names: Sequence[str]) -> Columns:
    """Return annotated facets: as numbers where all that is known is numbers, else a column for each value but one."""
    found: Columns = {}
    for name in names:
        values = [jobs.data.tasks[task].facets.get(name) for task in jobs.tasks]
        numbers = [v if isinstance(v, int | float) else None for v in values]
        if all(v is None for v in values):
            continue
        if all(n is not None or v is None for n, v in zip(numbers, values, strict=True)):
            found |= baselines.numbers(numbers, name)
        else:
            found |= baselines.dummies(jobs.groups(name), name)
    return found


def texts(jobs: Jobs, options: PayWorthyOptions) -> tuple[str | None, Columns]:
    """Return the model and the embeddings of the jobs' texts; nothing unless every job has one of the same length."""
    rows = jobs.data.tables["embeddings"].filter(pl.col("task_id").is_in(jobs.tasks))
    kinds = sorted({(str(m), int(d)) for m, d in rows.select("model", "asked_dimensions").iter_rows()})
    for model, asked in kinds:
        if options.embedding in (None, model):
            mine = rows.filter((pl.col("model") == model) & (pl.col("asked_dimensions") == asked))
            vectors = dict(mine.select("task_id", "vector").iter_rows())
            found = [_numbers(vectors.get(task)) for task in jobs.tasks]
            if len({len(one) for one in found}) == 1 and found[0]:
                return model, baselines.embeddings(np.asarray(found, dtype=np.float64))
    return None, {}


def _numbers(text: str | None) -> list[float]:
    value: Any = None if text is None else json.loads(text)
    return [float(v) for v in cast("list[float]", value)] if isinstance(value, list) else []

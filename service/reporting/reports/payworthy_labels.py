"""PayWorthy's tables of what forecasts are held against: other judges' labels, families, and baselines (Fig. 7; Tables 7, 9, 10)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from service.domain.reports import ReportColumn, ReportTable
from service.reporting import baselines
from service.reporting.agreement import cohen_kappa
from service.reporting.drawing import Bools, Floats
from service.reporting.forecast_auc import Estimate, drawn_aucs, on_common
from service.reporting.ranking import auc, spearman
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, mapping
from service.reporting.reports.making import AGENT, Row, bounds, count, fraction, table
from service.reporting.reports.payworthy_columns import (
    Columns,
    annotations,
    categories,
    facets,
    metadata,
    prices,
    texts,
)
from service.reporting.reports.payworthy_forecasts import left_of
from service.reporting.reports.payworthy_jobs import DRAWS, Forecasts, Jobs, PayWorthyOptions
from service.reporting.reports.payworthy_work import FIELDS, JOBS, METHOD, panel_rows
from service.reporting.residuals import DRAWS as FAMILY_DRAWS
from service.reporting.residuals import own_family
from service.reporting.weighting import rate

VERDICT = "verdict"
RULES: Mapping[str, baselines.Rule] = {
    "context_dependence": (-1.0, lambda x: x >= 4),
    "tool_credential_surface": (-1.0, lambda x: x >= 2),
    "autonomy_horizon": (-1.0, lambda x: x >= 4),
    "verifiability": (1.0, lambda x: x >= 4),
    "deliverable_modality": (1.0, lambda x: x >= 0.5),
}
"""The rule by hand: points for and against, of the mean annotation."""
Labels = dict[str, dict[str, bool]]
"""Label's name → run → label."""


def labels_of(data: Data, jobs: Jobs) -> Labels:
    """Return the verdict, the panel's fields, each judge's own word, the unanimous jobs, and the plans beside."""
    runs = {run.run_id for run in jobs.runs}
    found: Labels = {VERDICT: {run.run_id: run.solved for run in jobs.runs}}
    fields: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for run, name, value in panel_rows(data).iter_rows():
        if run in runs and name != "pay_worthy":
            fields[name][run] = value
    found |= {name: fields[name] for name in FIELDS if name in fields}
    details = _details(data, runs)
    by_judge: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for run, detail in details.items():
        judges: list[dict[str, Any]] = detail.get("judges") or []
        for said in judges:
            value = said["fields"]["pay_worthy"]
            if value is not None:
                by_judge[f"judge {said['judge']}"][run] = value
    if len(by_judge) > 1:
        found |= dict(sorted(by_judge.items()))
        found["unanimous"] = {r: found[VERDICT][r] for r, detail in details.items() if detail.get("unanimous")}
    for plan in data.settings.plans_beside:
        found[f"plan {plan}"] = _under(data, plan, runs)
    return found


def judge_labels(data: Data, forecasts: Sequence[Forecasts], options: PayWorthyOptions) -> ReportTable:
    """Return the paper's Fig. 7 and Table 9."""
    rows: list[Row] = []
    for one in forecasts:
        known = labels_of(data, one.jobs)
        rows += [_label(one, name, known[VERDICT], known[name], options) for name in known]
    columns = [
        AGENT,
        ReportColumn(name="label", title="Label"),
        count("jobs", "Jobs"),
        fraction("rate", "Holds", interval=True),
        ReportColumn(name="kappa", title="Cohen's kappa with the verdict"),
        ReportColumn(name="prompt", title="Prompt"),
        ReportColumn(name="auc_low", title="Lowest AUC"),
        ReportColumn(name="auc_high", title="Highest AUC"),
        ReportColumn(name="gain", title="Mean AUC, limits less generic"),
        ReportColumn(name="spearman", title="Spearman of AUCs with the verdict's"),
        ReportColumn(name="baseline_auc", title="AUC of category and pay type"),
        ReportColumn(name="text_auc", title="AUC of the text's embedding"),
    ]
    method = (
        "AUCs of the forecasters under each label as the truth, lowest and highest of all. Spearman (1904): of their AUCs under the label and under the verdict. Baselines: logistic regressions on category "
        f"and pay type, and on the text's embedding, 5-fold cross-fitted. Kappa: Cohen (1960), null where one label was given throughout. {JOBS}"
    )
    settings = {"seed": data.seed, "draws": DRAWS}
    n = sum(len(one.jobs.runs) for one in forecasts)
    return table(
        data, "judge_labels", "Labels of other judges", columns, rows, method=method, settings=settings, n=n,
        unit="jobs", excluded=left_of(forecasts),
    )  # fmt: skip


def _label(
    one: Forecasts,
    name: str,
    verdict: Mapping[str, bool],
    label: Mapping[str, bool],
    options: PayWorthyOptions,
) -> Row:
    places = [n for n, run in enumerate(one.jobs.runs) if run.run_id in label]
    jobs = one.jobs.only(places)
    runs = [run.run_id for run in jobs.runs]
    held: Bools = np.asarray([label[run] for run in runs], dtype=np.bool_)
    found = rate(held, one.jobs.data.seed, DRAWS)
    prompt = main_prompt(one)
    scores = {} if prompt is None else one.of(prompt)
    aucs = _aucs(held, scores, places)
    limits, generic = (_aucs(held, one.of(key), places) for key in ("limits", "generic"))
    steps = [limits[who] - generic[who] for who in limits if who in generic]
    return {
        "agent": one.jobs.label, "label": name, "jobs": len(runs), "rate": found.value,
        **bounds("rate", found.interval),
        "kappa": None if name == VERDICT else cohen_kappa([verdict[run] for run in runs], [label[run] for run in runs]),
        "prompt": prompt, "auc_low": min(aucs.values(), default=None), "auc_high": max(aucs.values(), default=None),
        "gain": float(np.mean(steps)) if steps else None,
        "spearman": None if name == VERDICT else _alike(_aucs(one.jobs.accepted, scores, range(len(one.jobs.runs))), aucs),
        "baseline_auc": _fitted(held, _plain(jobs, options), jobs.data.seed),
        "text_auc": _fitted(held, texts(jobs, options)[1], jobs.data.seed),
    }  # fmt: skip


def _alike(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return how far two labels put the forecasters in one order."""
    both = sorted(first.keys() & second.keys())
    return spearman(np.asarray([first[who] for who in both]), np.asarray([second[who] for who in both]))


def _aucs(held: Bools, scores: Mapping[str, Floats], places: Sequence[int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for who, p in scores.items():
        mine = p[list(places)]
        known = ~np.isnan(mine)
        value = auc(held[known], mine[known])
        if value is not None:
            found[who] = value
    return found


def _plain(jobs: Jobs, options: PayWorthyOptions) -> Columns:
    return categories(jobs, options) | baselines.dummies(jobs.groups(options.pay_facet), "pay")


def _fitted(held: Bools, columns: Columns, seed: int) -> float | None:
    if len(held) < baselines.FOLDS or not columns:
        return None
    return auc(held, baselines.cross_fitted(columns, held, seed))


def main_prompt(one: Forecasts) -> str | None:
    """Return the prompt that tables with one prompt show: the limits, else the first."""
    return "limits" if "limits" in one.prompts else next(iter(one.prompts), None)


def baseline_tables(data: Data, forecasts: Sequence[Forecasts], options: PayWorthyOptions) -> list[ReportTable]:
    """Return what forecasts must beat, and the regression on annotations with its terms."""
    rows: list[Row] = []
    terms: list[Row] = []
    for one in forecasts:
        if len(one.jobs.runs) < baselines.FOLDS:
            continue
        drawn = drawn_aucs(one.jobs.accepted, _rivals(one, options), data.seed, DRAWS)
        rows += [_rival(one, name, drawn.estimate(name)) for name in drawn.values]
        terms += _terms(one, options)
    columns = [
        AGENT, ReportColumn(name="baseline", title="Baseline"), count("jobs", "Jobs"),
        ReportColumn(name="auc", title="AUC", interval="auc"),
    ]  # fmt: skip
    method = (
        "Logistic regressions, 5-fold cross-fitted, ridge 1 on standardised columns. Metadata: pay type, price, duration, expertise. "
        "Annotations: means over forecasts. Text embedding: the vector of the job's text, where every job has one. "
        f"Stacked: regression on the forecasters' logits. {JOBS}"
    )
    first = table(
        data, "baselines", "Baselines", columns, rows, method=method, unit="jobs", excluded=left_of(forecasts),
        settings={"seed": data.seed, "draws": DRAWS}, n=sum(len(one.jobs.runs) for one in forecasts),
        plot={"mark": "bar", "x": "baseline", "y": "auc", "color": "agent"},
    )  # fmt: skip
    columns = [
        AGENT, ReportColumn(name="term", title="Term"), ReportColumn(name="beta", title="Coefficient"),
        ReportColumn(name="error", title="Standard error"), ReportColumn(name="p", title="p, two-sided"),
    ]  # fmt: skip
    method = (
        "Logistic regression of acceptance on the mean annotations, annotated facets and log10 of the price, standardised; Wald's z. Null: terms depend "
        "on each other, or the fit tells jobs apart without an error."
    )
    second = table(
        data, "annotation_regression", "What acceptance goes with", columns, terms, method=method, unit="jobs",
        n=sum(len(one.jobs.runs) for one in forecasts),
    )  # fmt: skip
    return [first, second]


def _rival(one: Forecasts, name: str, found: Estimate) -> Row:
    return {"agent": one.jobs.label, "baseline": name, "jobs": found.n, "auc": found.value} | bounds(
        "auc", found.interval
    )


def _rivals(one: Forecasts, options: PayWorthyOptions) -> dict[str, Floats]:
    jobs, seed = one.jobs, one.jobs.data.seed
    said, plain, known = annotations(one), categories(jobs, options), metadata(jobs, options)
    marked = facets(jobs, options.annotation_facets)
    model, text = texts(jobs, options)
    sets = {
        "categories": plain, "metadata": known, "annotations": said, "annotated facets": marked,
        "all of these": plain | known | said | marked, f"text embedding, {model}": text,
        "noise": baselines.noise(len(jobs.runs), max(1, len(said)), seed),
    }  # fmt: skip
    found = {name: baselines.cross_fitted(columns, jobs.accepted, seed) for name, columns in sets.items() if columns}
    if said:
        found["rule by hand"] = baselines.hand_rule(said, {k: rule for k, rule in RULES.items() if k in said})
    for prompt in one.prompts:
        scores = one.of(prompt)
        if len(scores) > 1:
            found[f"mean forecast, {prompt}"] = baselines.averaged(scores)
    return found | _stacked(one)


def _stacked(one: Forecasts) -> dict[str, Floats]:
    prompt = main_prompt(one)
    scores = {} if prompt is None else one.of(prompt)
    whole = np.all([~np.isnan(p) for p in scores.values()], axis=0) if scores else np.zeros(0, dtype=np.bool_)
    if len(scores) < 2 or int(whole.sum()) < baselines.FOLDS:
        return {}
    labels, common = on_common(one.jobs.accepted, scores)
    found = np.full(len(whole), np.nan)
    found[whole] = baselines.stacked(common, labels, one.jobs.data.seed)
    return {f"stacked, {prompt}": found}


def _terms(one: Forecasts, options: PayWorthyOptions) -> list[Row]:
    given = annotations(one) | facets(one.jobs, options.annotation_facets) | prices(one.jobs)
    columns = {name: scaled for name, p in given.items() if (scaled := _scaled(p)) is not None}
    found = baselines.regression(columns, one.jobs.accepted)
    return [{"agent": one.jobs.label, "term": t.name, "beta": t.beta, "error": t.error, "p": t.p} for t in found]


def _scaled(values: Floats) -> Floats | None:
    spread = float(values.std())
    return None if spread < 1e-12 else (values - values.mean()) / spread


def family_table(data: Data, forecasts: Sequence[Forecasts], options: PayWorthyOptions) -> list[ReportTable]:
    """Return the residual of forecasters under judges of their own family; no table without two judges and named families."""
    rows: list[Row] = []
    n = 0
    for one in forecasts:
        prompt = main_prompt(one)
        judges = {name: said for name, said in labels_of(data, one.jobs).items() if name.startswith("judge ")}
        scores = {} if prompt is None else one.of(prompt)
        if len(judges) < 2 or len(scores) < 2 or not options.families:
            continue
        runs = [run.run_id for run in one.jobs.runs]
        whole = np.asarray([all(run in said for said in judges.values()) for run in runs], dtype=np.bool_)
        whole &= np.all([~np.isnan(p) for p in scores.values()], axis=0)
        places = np.flatnonzero(whole)
        labels = {name: np.asarray([said[runs[k]] for k in places], dtype=np.bool_) for name, said in judges.items()}
        families = {who: f for who in scores if (f := _family(who, options)) is not None}
        families |= {name: f for name in judges if (f := _family(name.removeprefix("judge "), options)) is not None}
        found = own_family(labels, {who: p[places] for who, p in scores.items()}, families, data.seed)
        n += len(places)
        rows.append({
            "agent": one.jobs.label, "prompt": prompt, "forecasters": len(scores), "judges": len(judges),
            "cells": found.cells, "jobs": len(places), "residual": found.own, **bounds("residual", found.interval),
        })  # fmt: skip
    if not rows:
        return []
    columns = [
        AGENT, ReportColumn(name="prompt", title="Prompt"), count("forecasters", "Forecasters"),
        count("judges", "Judges"), count("cells", "Of one family"), count("jobs", "Jobs"),
        ReportColumn(name="residual", title="Mean residual of one's own family", interval="residual"),
    ]  # fmt: skip
    method = f"AUC of every forecaster under every judge, less its row's and column's mean, plus the mean of all (Tukey 1977). {JOBS}"
    settings = {"seed": data.seed, "draws": FAMILY_DRAWS, "families": dict(options.families)}
    return [
        table(data, "family_residual", "Own family", columns, rows, method=method, settings=settings, n=n, unit="jobs")
    ]


def _family(key: str, options: PayWorthyOptions) -> str | None:
    return options.families.get(key) or options.families.get(key.partition("#")[0])


def _details(data: Data, runs: set[str]) -> dict[str, dict[str, Any]]:
    mine = gradings.standing(data).filter(gradings.of_method(METHOD))
    return {run: mapping(text) for run, text in mine.select("run_id", "detail").iter_rows() if run in runs}


def _under(data: Data, plan: str, runs: set[str]) -> dict[str, bool]:
    sums = gradings.standing(data, plan).group_by("run_id").agg(pl.col("score").sum(), pl.col("max_score").sum())
    found = sums.select("run_id", "score", "max_score").iter_rows()
    return {run: score >= most for run, score, most in found if run in runs and most}

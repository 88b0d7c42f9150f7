"""PayWorthy's tables of forecasts: AUC, claims, calibration, prompts, top-k, how they were asked for (Fig. 2, 5, 9; Table 14)."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import polars as pl

from service.domain.reports import ReportColumn, ReportTable
from service.reporting.calibration import CLIP, PLATT_FITTED, PLATT_SPLITS, claim, platt
from service.reporting.drawing import Floats
from service.reporting.forecast_auc import Drawn, Estimate, drawn_aucs, on_common
from service.reporting.ranking import BAND_DRAWS, TIE_DRAWS, top, within_auc
from service.reporting.reports.data import Data, mapping
from service.reporting.reports.making import AGENT, Row, bounds, count, fraction, table, usd
from service.reporting.reports.payworthy_jobs import DRAWS, Forecasts, PayWorthyOptions
from service.reporting.reports.payworthy_work import JOBS

MEAN = "mean of all"
FORECASTER = ReportColumn(name="forecaster", title="Forecaster")
PROMPT = ReportColumn(name="prompt", title="Prompt")
_AGAINST = {"drop": "limits", "only": "generic"}
_PLAIN = {"placebo": "generic", "misstated": "generic", "limits": "generic"}


def left_of(forecasts: Sequence[Forecasts]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in forecasts:
        for reason, n in one.left.items():
            found[reason] = found.get(reason, 0) + n
    return found


def total_of(forecasts: Sequence[Forecasts]) -> int:
    return sum(int((~np.isnan(p)).sum()) for one in forecasts for p in one.scores.values())


def forecasters(data: Data, forecasts: Sequence[Forecasts], options: PayWorthyOptions) -> ReportTable:
    """Return the paper's Fig. 5, with the mean over forecasters on the jobs that all of them cover."""
    rows: list[Row] = []
    for one in forecasts:
        groups = one.jobs.groups(options.category_facet)
        for prompt in one.prompts:
            mine = one.of(prompt)
            drawn = drawn_aucs(one.jobs.accepted, mine, data.seed, DRAWS)
            for who, p in mine.items():
                rows.append(_forecaster(one, who, prompt, drawn.estimate(who), p, groups))
            if len(mine) > 1:
                whole = all(n == len(one.jobs.runs) for n in drawn.n.values())
                rows.append(_row(one, MEAN, prompt, (drawn if whole else _drawn(one, mine)).mean([*mine])))
    columns = [
        AGENT, FORECASTER, PROMPT,
        count("jobs", "Jobs"),
        ReportColumn(name="auc", title="AUC", interval="auc"),
        ReportColumn(name="within_auc", title="AUC within categories"),
        fraction("claim", "Mean forecast", interval=True),
        fraction("rate", "Accepted"),
        ReportColumn(name="overclaim", title="Claimed / accepted", unit="ratio", interval="overclaim"),
        ReportColumn(name="ece", title="ECE", interval="ece"),
        ReportColumn(name="platt_ece", title="ECE recalibrated"),
        fraction("platt_accuracy", "Accuracy recalibrated"),
        count("before", "Made before the attempt"),
        count("after", "Made after it"),
    ]  # fmt: skip
    method = (
        "AUC: Hanley and McNeil (1982), ties count half; null where all jobs are of one label. ECE: ten bins of equal width. "
        f"Recalibrated: Platt (1999) on logits clipped to [{CLIP}, {1 - CLIP}], fitted on {PLATT_FITTED} jobs drawn at random, "
        f"scored on the rest, mean of {PLATT_SPLITS}. {JOBS}"
    )
    chart = {"mark": "bar", "x": "forecaster", "y": "auc", "color": "prompt"}
    return _table(data, forecasts, "forecasters", "Forecasters", columns, rows, method, chart)


def _forecaster(one: Forecasts, who: str, prompt: str, auc: Estimate, p: np.ndarray, groups: Sequence[str]) -> Row:
    known = np.flatnonzero(~np.isnan(p))
    labels, said, seed = one.jobs.accepted[known], p[known], one.jobs.data.seed
    found, again = claim(labels, said, seed, DRAWS), platt(labels, said, seed)
    mine = one.rows.filter((pl.col("forecaster") == who) & (pl.col("prompt") == prompt) & (pl.col("state") == "ok"))
    before = mine["made_before_attempt"]
    return _row(one, who, prompt, auc) | {
        "within_auc": within_auc(labels, said, [groups[place] for place in known.tolist()]),
        "claim": found.mean.value, **bounds("claim", found.mean.interval), "rate": found.rate,
        "overclaim": found.overclaim.value, **bounds("overclaim", found.overclaim.interval),
        "ece": found.ece.value, **bounds("ece", found.ece.interval),
        "platt_ece": again.ece, "platt_accuracy": again.accuracy,
        "before": int(before.fill_null(value=False).sum()), "after": int((~before.fill_null(value=True)).sum()),
    }  # fmt: skip


def _row(one: Forecasts, who: str, prompt: str, auc: Estimate) -> Row:
    empty: Row = dict.fromkeys(
        ("within_auc", "claim", "rate", "overclaim", "ece", "platt_ece", "platt_accuracy", "before", "after")
    )
    for name in ("claim", "overclaim", "ece"):
        empty |= bounds(name, None)
    return empty | {
        "agent": one.jobs.label, "forecaster": who, "prompt": prompt, "jobs": auc.n, "auc": auc.value,
        **bounds("auc", auc.interval),
    }  # fmt: skip


def ablations(data: Data, forecasts: Sequence[Forecasts]) -> ReportTable:
    """Return the paper's Fig. 9: prompts against what they change, each forecaster and the mean of all, jobs paired."""
    rows: list[Row] = []
    for one in forecasts:
        for prompt in one.prompts:
            against = compared_with(prompt)
            if against is not None and against in one.prompts:
                rows += _steps(one, prompt, against)
    columns = [
        AGENT, FORECASTER, PROMPT,
        ReportColumn(name="against", title="Against"),
        count("jobs", "Jobs of both"),
        ReportColumn(name="auc", title="AUC"),
        ReportColumn(name="auc_against", title="AUC against"),
        ReportColumn(name="difference", title="Difference", interval="difference"),
    ]  # fmt: skip
    method = (
        "Difference of AUCs over the jobs that have both forecasts, the same draws for both. Limits, placebo, mis-stated and single "
        f"limits against the generic prompt; prompts without one limit against that with all. {JOBS}"
    )
    chart = {"mark": "bar", "x": "prompt", "y": "difference", "color": "forecaster"}
    return _table(data, forecasts, "prompt_ablations", "Prompts", columns, rows, method, chart)


def compared_with(prompt: str) -> str | None:
    """Return the prompt that this one is held against: of the same reason and system message."""
    plus, at = prompt.find("+"), prompt.find("@")
    end = min(place for place in (plus, at, len(prompt)) if place >= 0)
    variant, rest = prompt[:end], prompt[end:]
    against = _PLAIN.get(variant) or _AGAINST.get(variant.partition("_")[0])
    return None if against is None else against + rest


def _steps(one: Forecasts, prompt: str, against: str) -> list[Row]:
    mine, other = one.of(prompt), one.of(against)
    both = [who for who in mine if who in other]
    if not both:
        return []
    named = {f"{side} {who}": p[who] for side, p in (("mine", mine), ("other", other)) for who in both}
    together = _drawn(one, named)
    found: list[Row] = []
    for who in both:
        sides = (f"mine {who}", f"other {who}")
        whole = together.n[sides[0]] == len(one.jobs.runs)  # then the jobs of all are those of each
        drawn = together if whole else _drawn(one, {side: named[side] for side in sides})
        estimates = (drawn.estimate(sides[0]), drawn.estimate(sides[1]))
        found.append(_step(one, who, prompt, against, estimates, drawn.difference(*sides)))
    if len(both) > 1:
        ours, theirs = [f"mine {who}" for who in both], [f"other {who}" for who in both]
        means = (together.mean(ours), together.mean(theirs))
        found.append(_step(one, MEAN, prompt, against, means, together.mean_difference(ours, theirs)))
    return found


def _drawn(one: Forecasts, named: dict[str, Floats]) -> Drawn:
    """Return AUCs over the jobs that all of these forecasts cover."""
    labels, scores = on_common(one.jobs.accepted, named)
    return drawn_aucs(labels, scores, one.jobs.data.seed, DRAWS)


def _step(one: Forecasts, who: str, prompt: str, against: str, sides: tuple[Estimate, Estimate], step: Estimate) -> Row:
    return {
        "agent": one.jobs.label, "forecaster": who, "prompt": prompt, "against": against, "jobs": step.n,
        "auc": sides[0].value, "auc_against": sides[1].value,
        "difference": step.value, **bounds("difference", step.interval),
    }  # fmt: skip


def top_shares(data: Data, forecasts: Sequence[Forecasts], options: PayWorthyOptions) -> ReportTable:
    """Return the paper's Fig. 2."""
    rows: list[Row] = []
    for one in forecasts:
        for (who, prompt), p in one.scores.items():
            known = np.flatnonzero(~np.isnan(p))
            for share in options.top_shares:
                found = top(one.jobs.accepted[known], p[known], share, data.seed)
                rows.append({
                    "agent": one.jobs.label, "forecaster": who, "prompt": prompt, "share": share, "jobs": found.size,
                    "accepted": found.rate, "band_low": (found.band or (None, None))[0],
                    "band_high": (found.band or (None, None))[1],
                })  # fmt: skip
    columns = [
        AGENT, FORECASTER, PROMPT,
        fraction("share", "Highest forecasts"),
        count("jobs", "Jobs"),
        fraction("accepted", "Accepted"),
        fraction("band_low", "Random, 2.5 %"),
        fraction("band_high", "Random, 97.5 %"),
    ]  # fmt: skip
    method = (
        f"Acceptance among the jobs with the highest forecasts; ties at random, mean of {TIE_DRAWS} draws. Random: percentiles of "
        f"{BAND_DRAWS} random selections of the same size."
    )
    chart = {"mark": "line", "x": "share", "y": "accepted", "color": "forecaster"}
    return _table(data, forecasts, "top_shares", "The highest forecasts", columns, rows, method, chart)


def protocol(data: Data, forecasts: Sequence[Forecasts]) -> ReportTable:
    """Return the paper's Table 14: how every forecaster was asked, what was left out, what it took."""
    rows: list[Row] = []
    for one in forecasts:
        for key, part in one.rows.sort("forecaster", "prompt").group_by("forecaster", "prompt", maintain_order=True):
            rows.append(_protocol(one.jobs.label, str(key[0]), str(key[1]), part))
    columns = [
        AGENT, FORECASTER, PROMPT,
        ReportColumn(name="model", title="Model"),
        ReportColumn(name="reported", title="Calls itself"),
        ReportColumn(name="source", title="Source"),
        count("ok", "Forecasts"),
        count("excluded", "Excluded"),
        count("failed", "Failed"),
        count("asked_again", "Asked again"),
        ReportColumn(name="template", title="Template, sha256"),
        ReportColumn(name="first", title="First"),
        ReportColumn(name="last", title="Last"),
        count("input_tokens", "Input tokens"),
        count("output_tokens", "Output tokens"),
        usd("cost_usd", "Cost"),
    ]  # fmt: skip
    method = "Excluded: neither the first answer nor the second, at twice the tokens, fitted. Cost: null where a part is not known."
    return _table(data, forecasts, "forecast_protocol", "How forecasts were made", columns, rows, method, None)


def _protocol(agent: str, who: str, prompt: str, part: pl.DataFrame) -> Row:
    states = {state: part.filter(pl.col("state") == state).height for state in ("ok", "excluded", "failed")}
    usage: list[dict[str, int]] = [mapping(text) for text in part["usage"].to_list()]
    asked = part.filter(pl.col("asks") > 0)
    unknown = asked.height == 0 or asked["cost_usd"].null_count() > 0
    times: list[datetime] = sorted(part["made_at"].to_list())
    return {
        "agent": agent, "forecaster": who, "prompt": prompt, "model": _names(part["model"]),
        "reported": _names(part["reported_model"]), "source": _names(part["source"]), **states,
        "asked_again": part.filter(pl.col("asks") > 1).height, "template": _names(part["template_sha256"]),
        "first": times[0].isoformat(), "last": times[-1].isoformat(),
        "input_tokens": sum(u.get(name, 0) for u in usage for name in ("input_tokens", "cached_input_tokens", "cache_write_tokens")),
        "output_tokens": sum(u.get("output_tokens", 0) for u in usage),
        "cost_usd": None if unknown else float(asked["cost_usd"].sum()),
    }  # fmt: skip


def _names(values: pl.Series) -> str | None:
    return ", ".join(sorted({str(value) for value in values.to_list() if value is not None})) or None


def _table(
    data: Data, forecasts: Sequence[Forecasts], name: str, title: str, columns: Sequence[ReportColumn],
    rows: Sequence[Row], method: str, chart: dict[str, str] | None,
) -> ReportTable:  # fmt: skip
    return table(
        data, name, title, columns, rows, method=method, n=total_of(forecasts), unit="forecasts",
        excluded=left_of(forecasts), settings={"seed": data.seed, "draws": DRAWS}, plot=chart,
    )  # fmt: skip

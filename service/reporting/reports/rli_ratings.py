"""What people's ratings say besides verdicts: why work was rejected, how long they took, how far they agree (RLI, section B)."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from service.domain.campaigns import PAIRWISE_S, PANEL_S, Form
from service.domain.preferences import Choice, combined
from service.domain.ratings import Purpose
from service.domain.reports import ReportColumn, ReportTable
from service.reporting.agreement import hard_disagreement, no_failure_bound, pairwise_agreement, quantile
from service.reporting.causes import tag_shares
from service.reporting.reports.data import Data, listing
from service.reporting.reports.making import AGENT, Row, count, fraction, seconds, table
from service.reporting.reports.rli_options import RliOptions

SOFT_LIMITS_S = {Form.HUMAN_PANEL: PANEL_S, Form.PAIRWISE: PAIRWISE_S}
BIN_S = 300
LAST_BIN = 12
"""All above an hour are in one bin."""
ALL = "all agents"
Rating = Mapping[str, Any]


def ratings(data: Data) -> list[Rating]:
    """Return all ratings but those of gold items, which qualify a rater and count for nothing else."""
    rows = data.tables["ratings"].sort("rating_id").iter_rows(named=True)
    return [row for row in rows if row["purpose"] != Purpose.GOLD]


def failure_tags(data: Data, given: Sequence[Rating]) -> ReportTable:
    agents = {r.run_id: r.agent_id for r in data.runs}
    rejected = [r for r in given if r["accept"] is False and r["run_id"] in agents]
    parts = [
        (ALL, rejected),
        *((a.label, [r for r in rejected if agents[r["run_id"]] == i]) for i, a in data.agents.items()),
    ]
    rows: list[Row] = [
        {"agent": label, "tag": one.name, "ratings": one.count, "share": one.share}
        for label, part in parts
        for one in tag_shares([listing(r["tags"]) for r in part])
    ]
    columns = [AGENT, ReportColumn(name="tag", title="Tag"), count("ratings", "Ratings"), fraction("share", "Share")]
    bare = sum(not listing(r["tags"]) for r in rejected)
    notes = [f"{bare} of the rejecting ratings carry no tag; they are in the denominator."] if bare else []
    method = "Share of rejecting ratings that carry the tag; one may carry several."
    return table(
        data,
        "failure_tags",
        "Why work was rejected",
        columns,
        rows,
        n=len(rejected),
        unit="ratings",
        excluded={},
        method=method,
        notes=notes,
        plot={"mark": "bar", "x": "tag", "y": "share", "color": "agent"},
    )


def evaluation_times(data: Data, given: Sequence[Rating]) -> list[ReportTable]:
    """Return a summary and the histogram (Fig. 11) of how long ratings took."""
    by_form = {form: [float(r["active_s"]) for r in given if r["form"] == form] for form in SOFT_LIMITS_S}
    summary = [_times(form, values) for form, values in by_form.items() if values]
    bins: list[Row] = []
    for form, values in by_form.items():
        places = [min(LAST_BIN, int(value // BIN_S)) for value in values]
        last = max(places, default=-1)
        bins.extend({"form": form, "from_s": p * BIN_S, "ratings": places.count(p)} for p in range(last + 1))
    form_column = ReportColumn(name="form", title="Form")
    columns = [
        form_column,
        count("ratings", "Ratings"),
        seconds("mean_s", "Mean"),
        seconds("median_s", "Median"),
        seconds("p90_s", "90th percentile"),
        fraction("over", "Over the soft limit"),
    ]
    method = "Seconds at work, as counted by the page; soft limits 20 min (against the reference) and 30 min (pairs)."
    ratings_n = sum(len(v) for v in by_form.values())
    histogram = [form_column, seconds("from_s", "From"), count("ratings", "Ratings")]
    chart = {"mark": "bar", "x": "from_s", "y": "ratings", "color": "form"}
    return [
        table(
            data,
            "evaluation_times",
            "Time of a rating",
            columns,
            summary,
            n=ratings_n,
            unit="ratings",
            excluded={},
            method=method,
        ),
        table(
            data,
            "evaluation_time_histogram",
            "Times of ratings",
            histogram,
            bins,
            n=ratings_n,
            unit="ratings",
            excluded={},
            method=f"{method} Bins of {BIN_S} s; the last one has no upper end.",
            plot=chart,
        ),
    ]


def _times(form: str, values: Sequence[float]) -> Row:
    limit = SOFT_LIMITS_S[Form(form)]
    return {
        "form": form,
        "ratings": len(values),
        "mean_s": fmean(values),
        "median_s": median(values),
        "p90_s": quantile(sorted(values), 0.9),
        "over": sum(v > limit for v in values) / len(values),
    }


def rater_agreement(data: Data, given: Sequence[Rating], chosen: RliOptions) -> ReportTable:
    """Return agreement on completion, on pairs, and what the audits found."""
    own = [r for r in given if r["purpose"] == Purpose.RATING]
    completion = _by_item([r for r in own if r["form"] == Form.HUMAN_PANEL], lambda r: bool(r["accept"]))
    pairs = _by_item(
        [r for r in own if r["form"] == Form.PAIRWISE],
        lambda r: combined(Choice(r["completion"]), Choice(r["quality"]), chosen.combination),
    )
    rows = [_agreement("completion", completion, None), _agreement("pairs", pairs, Choice.SAME)]
    rows.extend(_checks(given))
    columns = [
        ReportColumn(name="measure", title="Measure"),
        count("items", "Items"),
        count("pairs", "Pairs of ratings"),
        fraction("agreement", "Agreement"),
        fraction("chance", "By chance"),
        fraction("hard_disagreement", "Opposed"),
        fraction("bound", "Upper bound of disagreement"),
    ]
    method = (
        "Share of equal labels over all pairs of independent ratings of one item; by chance: sum of squared shares of the labels; "
        "opposed: first against second, where one may also be indifferent. Audits and second passes: share that confirms the "
        "majority of the independent ratings; where all do, the one-sided 95 % bound 1 - 0.05^(1/n)."
    )
    settings = {"combination": chosen.combination}
    return table(
        data, "rater_agreement", "Agreement of raters", columns, rows, n=len(given), unit="ratings", excluded={}, method=method,
        settings=settings,
    )  # fmt: skip


def _agreement(name: str, items: Mapping[str, Sequence[object]], neutral: object) -> Row:
    labels = [label for said in items.values() if len(said) > 1 for label in said]
    shares = [labels.count(label) / len(labels) for label in set(labels)]
    both = [said for said in items.values() if len(said) > 1]
    return {
        "measure": name,
        "items": len(both),
        "pairs": sum(len(said) * (len(said) - 1) // 2 for said in both),
        "agreement": pairwise_agreement(both),
        "chance": sum(share * share for share in shares) if labels else None,
        "hard_disagreement": None if neutral is None else hard_disagreement(both, neutral),
        "bound": None,
    }


def _checks(given: Sequence[Rating]) -> list[Row]:
    panel = [r for r in given if r["form"] == Form.HUMAN_PANEL]
    own = _by_item([r for r in panel if r["purpose"] == Purpose.RATING], lambda r: bool(r["accept"]))
    rows: list[Row] = []
    for purpose in (Purpose.SECOND_PASS, Purpose.AUDIT):
        checks = [(r, own.get(r["item_id"], [])) for r in panel if r["purpose"] == purpose]
        decided = [(bool(r["accept"]), 2 * sum(said) > len(said)) for r, said in checks if 2 * sum(said) != len(said)]
        agreed = sum(a == b for a, b in decided)
        rows.append(
            {
                "measure": purpose,
                "items": len(decided),
                "pairs": len(decided),
                "agreement": agreed / len(decided) if decided else None,
                "chance": None,
                "hard_disagreement": None,
                "bound": no_failure_bound(len(decided)) if agreed == len(decided) else None,
            }
        )
    return rows


def _by_item(rows: Sequence[Rating], label: Callable[[Rating], Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["item_id"], []).append(label(row))
    return found

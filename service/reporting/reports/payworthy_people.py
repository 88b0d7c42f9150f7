"""What PayWorthy's verdicts are held against: people's word on the same work, and how much of it the judge reads (Tables 4, 8)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from service.domain.reports import ReportColumn, ReportTable
from service.reporting.agreement import agreement, cohen_kappa
from service.reporting.drawing import Bools
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, mapping
from service.reporting.reports.making import AGENT, Row, bounds, count, fraction, table
from service.reporting.reports.payworthy_jobs import DRAWS, Jobs, PayWorthyOptions
from service.reporting.reports.payworthy_work import ALL, JOBS, METHOD
from service.reporting.weighting import rate

FORM = "human_panel"
OWN = "primary"


def people(data: Data, jobs: Sequence[Jobs], options: PayWorthyOptions) -> list[ReportTable]:
    """Return the paper's Table 4: what people accept, and how far the judge agrees; no table where nobody rated."""
    said = _majorities(data)
    rows: list[Row] = []
    n = 0
    for one in jobs:
        mine = one.only([place for place, run in enumerate(one.runs) if run.run_id in said])
        n += len(mine.runs)
        groups = mine.groups(options.category_facet)
        rows += [_people(mine, groups, name, said) for name in ([ALL, *sorted(set(groups))] if mine.runs else [])]
    if not rows:
        return []
    columns = [
        AGENT, ReportColumn(name="group", title="Category"), count("jobs", "Jobs"),
        fraction("people", "Accepted by people", interval=True), fraction("judge", "Accepted by the judge", interval=True),
        fraction("agreement", "Agree"), ReportColumn(name="kappa", title="Cohen's kappa"),
    ]  # fmt: skip
    method = (
        "Jobs that a person rated (form human_panel): the majority of the ratings, evenly split ones left out, beside the verdict. "
        "95 % intervals: percentile bootstrap over jobs within categories (Efron and Tibshirani 1993)."
    )
    split = sum(value is None for value in _opinions(data).values())
    return [
        table(
            data, "people_and_judge", "People and the judge", columns, rows, method=method, n=n, unit="jobs",
            excluded={"evenly split": split} if split else {}, settings={"seed": data.seed, "draws": DRAWS},
        )
    ]  # fmt: skip


def _people(jobs: Jobs, groups: Sequence[str], name: str, said: Mapping[str, bool]) -> Row:
    places = [place for place, group in enumerate(groups) if name in (ALL, group)]
    mine, within = jobs.only(places), [groups[place] for place in places]
    theirs: Bools = np.asarray([said[run.run_id] for run in mine.runs], dtype=np.bool_)
    people_rate, judge = (rate(held, jobs.data.seed, DRAWS, within) for held in (theirs, mine.accepted))
    pairs = theirs.tolist(), mine.accepted.tolist()
    return {
        "agent": jobs.label, "group": name, "jobs": len(places),
        "people": people_rate.value, **bounds("people", people_rate.interval),
        "judge": judge.value, **bounds("judge", judge.interval),
        "agreement": agreement(*pairs), "kappa": cohen_kappa(*pairs),
    }  # fmt: skip


def _majorities(data: Data) -> dict[str, bool]:
    return {run: value for run, value in _opinions(data).items() if value is not None}


def _opinions(data: Data) -> dict[str, bool | None]:
    """Return run → what the most ratings say, null where they are evenly split."""
    plain = (pl.col("form") == FORM) & (pl.col("purpose") == "rating") & ~pl.col("by_model")
    given: defaultdict[str, list[bool]] = defaultdict(list)
    rows = data.tables["ratings"].filter(plain & pl.col("accept").is_not_null())
    for run, accept in rows.select("run_id", "accept").iter_rows():
        given[run].append(accept)
    return {
        run: None if 2 * sum(all_of) == len(all_of) else 2 * sum(all_of) > len(all_of) for run, all_of in given.items()
    }


def readings(data: Data, jobs: Sequence[Jobs]) -> list[ReportTable]:
    """Return the paper's Table 8: the same work, anchors of people's own too, under every plan; no table without one beside."""
    rows: list[Row] = []
    plans = {OWN: gradings.standing(data)} | {p: gradings.standing(data, p) for p in data.settings.plans_beside}
    for one in jobs if len(plans) > 1 else ():
        for plan, verdicts in plans.items():
            rows.append(_reading(one, plan, verdicts))
    if not rows:
        return []
    columns = [
        AGENT, ReportColumn(name="plan", title="Plan"), ReportColumn(name="reading", title="Read"),
        count("external", "Of them delivered by upload"), count("jobs", "Jobs"),
        fraction("accepted", "Accepted", interval=True), fraction("primary", "Accepted, primary plan"),
        count("up", "Accepted here alone"), count("down", "Accepted by the primary plan alone"),
        ReportColumn(name="kappa", title="Cohen's kappa with the primary plan"),
    ]  # fmt: skip
    method = f"Full score under each plan of jobs that both it and the primary plan graded. Read: the panel's setting. {JOBS}"
    return [
        table(
            data, "readings", "How much the judge reads", columns, rows, method=method, unit="jobs",
            n=sum(len(one.runs) for one in jobs), settings={"seed": data.seed, "draws": DRAWS},
        )
    ]  # fmt: skip


def _reading(jobs: Jobs, plan: str, verdicts: pl.DataFrame) -> Row:
    sums = verdicts.group_by("run_id").agg(pl.col("score").sum(), pl.col("max_score").sum())
    known = {run: score >= most for run, score, most in sums.iter_rows() if most}
    mine = jobs.only([place for place, run in enumerate(jobs.runs) if run.run_id in known])
    own = mine.accepted.tolist()
    said = own if plan == OWN else [known[run.run_id] for run in mine.runs]
    found = rate(np.asarray(said, dtype=np.bool_), jobs.data.seed, DRAWS)
    ids = {run.run_id for run in mine.runs}
    details = verdicts.filter((pl.col("method") == METHOD) & pl.col("run_id").is_in(ids))["detail"].to_list()
    read = Counter(str(mapping(text).get("reading") or "") for text in details)
    return {
        "agent": jobs.label, "plan": plan, "reading": ", ".join(sorted(name for name in read if name)) or None,
        "external": sum("external" in run.flags for run in mine.runs), "jobs": len(said),
        "accepted": found.value, **bounds("accepted", found.interval),
        "primary": sum(own) / len(own) if own else None,
        "up": sum(b and not a for a, b in zip(own, said, strict=True)),
        "down": sum(a and not b for a, b in zip(own, said, strict=True)),
        "kappa": None if plan == OWN else cohen_kappa(own, said),
    }  # fmt: skip

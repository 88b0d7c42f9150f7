"""PayWorthy's tables of the work itself: acceptance, criteria, causes, chance, and what tools gain (Table 2; Fig. 4, 8)."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from service.domain.errors import Invalid
from service.domain.reports import ReportColumn, ReportTable
from service.reporting import ceiling
from service.reporting.agreement import cohen_kappa
from service.reporting.drawing import Bools
from service.reporting.reports import gradings
from service.reporting.reports.data import Data, mapping
from service.reporting.reports.making import AGENT, Row, bounds, count, fraction, table
from service.reporting.reports.payworthy_jobs import DRAWS, Jobs, PayWorthyOptions
from service.reporting.weighting import interaction, rate, reweighted_rate, weighted_rate

METHOD = "llm_panel"
FIELDS = ("produced", "on_spec", "client_plausible", "pay_worthy", "fabricated")
JOBS = "95 % intervals: percentile bootstrap over jobs (Efron and Tibshirani 1993)."
ALL = "all"


def acceptance(data: Data, jobs: Sequence[Jobs], options: PayWorthyOptions) -> ReportTable:
    """Return the paper's Table 2: by category and pay type, one per job and weighted by dollars."""
    rows: list[Row] = []
    for one in jobs:
        for kind, facet in (("all", None), ("category", options.category_facet), ("pay type", options.pay_facet)):
            names = [ALL] * len(one.runs) if facet is None else one.groups(facet)
            largest = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
            rows += [_accepted(one, kind, name, [n for n, m in enumerate(names) if m == name]) for name, _ in largest]
        if options.corpus_shares:
            rows.append(_reweighted(one, options))
    columns = [
        AGENT,
        ReportColumn(name="by", title="By"),
        ReportColumn(name="group", title="Group"),
        count("jobs", "Jobs"),
        fraction("share", "Share of jobs"),
        fraction("accepted", "Accepted", interval=True),
        count("priced", "With a price"),
        fraction("accepted_usd", "Accepted, by dollars", interval=True),
    ]
    method = (
        f"Accepted: full score of the agent's first sample of a job. By dollars: Σ price·accepted / Σ price. {JOBS}"
    )
    settings = {"seed": data.seed, "draws": DRAWS}
    n = sum(len(one.runs) for one in jobs)
    return table(data, "acceptance", "Acceptance", columns, rows, method=method, settings=settings, n=n, unit="jobs")


def _accepted(jobs: Jobs, kind: str, name: str, places: Sequence[int]) -> Row:
    mine = jobs.only(places)
    plain = rate(mine.accepted, jobs.data.seed, DRAWS)
    dollars = weighted_rate(mine.accepted, mine.worth, jobs.data.seed, DRAWS)
    return {
        "agent": jobs.label, "by": kind, "group": name, "jobs": len(places), "share": len(places) / len(jobs.runs),
        "accepted": plain.value, **bounds("accepted", plain.interval), "priced": dollars.n,
        "accepted_usd": dollars.value, **bounds("accepted_usd", dollars.interval),
    }  # fmt: skip


def _reweighted(jobs: Jobs, options: PayWorthyOptions) -> Row:
    groups = jobs.groups(options.category_facet)
    found = reweighted_rate(jobs.accepted, groups, options.corpus_shares, jobs.data.seed, DRAWS).estimate
    return {
        "agent": jobs.label, "by": "category", "group": "reweighted to the corpus", "jobs": found.n, "share": None,
        "accepted": found.value, **bounds("accepted", found.interval), "priced": None, "accepted_usd": None,
        **bounds("accepted_usd", None),
    }  # fmt: skip


def panel_rows(data: Data) -> pl.DataFrame:
    """Return ``run_id, criterion, value`` of the panel's fields: value is what the judges said, also of ``fabricated``."""
    mine = gradings.standing(data).filter(gradings.of_method(METHOD)).select("grading_id")
    rows = data.tables["criteria"].join(mine, on="grading_id", how="semi")
    found: list[tuple[str, str, bool]] = []
    for run, name, text in rows.select("run_id", "criterion", "detail").iter_rows():
        detail: dict[str, Any] = mapping(text)
        if name in FIELDS and detail.get("value") is not None:
            found.append((run, name, detail["value"]))
    return pl.DataFrame(found, schema={"run_id": pl.String, "criterion": pl.String, "value": pl.Boolean}, orient="row")


def criteria(data: Data, jobs: Sequence[Jobs]) -> ReportTable:
    """Return the paper's Fig. 4a."""
    said = {(run, name): value for run, name, value in panel_rows(data).iter_rows()}
    rows: list[Row] = []
    for one in jobs:
        for name in FIELDS:
            places = [n for n, run in enumerate(one.runs) if (run.run_id, name) in said]
            mine = one.only(places)
            held: Bools = np.asarray([said[run.run_id, name] for run in mine.runs], dtype=np.bool_)
            plain = rate(held, data.seed, DRAWS)
            dollars = weighted_rate(held, mine.worth, data.seed, DRAWS)
            rows.append({
                "agent": one.label, "criterion": name, "jobs": plain.n, "rate": plain.value,
                **bounds("rate", plain.interval), "priced": dollars.n, "rate_usd": dollars.value,
                **bounds("rate_usd", dollars.interval),
            })  # fmt: skip
    columns = [
        AGENT,
        ReportColumn(name="criterion", title="Criterion"),
        count("jobs", "Jobs"),
        fraction("rate", "Said so", interval=True),
        count("priced", "With a price"),
        fraction("rate_usd", "By dollars", interval=True),
    ]
    method = f"What the panel's majority said of each criterion, ties left out. {JOBS}"
    settings = {"seed": data.seed, "draws": DRAWS}
    chart = {"mark": "bar", "x": "criterion", "y": "rate", "color": "agent"}
    return table(
        data, "criterion_rates", "Criteria", columns, rows, method=method, settings=settings, plot=chart,
        n=sum(len(one.runs) for one in jobs), unit="jobs",
    )  # fmt: skip


def causes(data: Data, jobs: Sequence[Jobs]) -> ReportTable:
    """Return the paper's Fig. 4b: why work was rejected."""
    mine = gradings.standing(data).filter(gradings.of_method(METHOD))
    details = {run: mapping(text) for run, text in mine.select("run_id", "detail").iter_rows()}
    rows: list[Row] = []
    rejected_of_all = 0
    for one in jobs:
        rejected: list[dict[str, Any]] = [details.get(run.run_id, {}) for run in one.runs if not run.solved]
        rejected_of_all += len(rejected)
        found = Counter((str(d.get("cause") or "unlabeled"), str(d.get("label") or "unlabeled")) for d in rejected)
        for (cause, label), n in sorted(found.items(), key=lambda item: (-item[1], item[0])):
            rows.append({"agent": one.label, "cause": cause, "label": label, "jobs": n, "share": n / len(rejected)})
    columns = [
        AGENT,
        ReportColumn(name="cause", title="Cause"),
        ReportColumn(name="label", title="Label"),
        count("jobs", "Jobs"),
        fraction("share", "Share of rejected"),
    ]
    method = (
        "The label that rejecting votes name most often, the list's first of equals, and its cause; of rejected jobs."
    )
    chart = {"mark": "bar", "x": "cause", "y": "share", "color": "agent"}
    return table(
        data, "rejection_causes", "Why work was rejected", columns, rows, method=method, n=rejected_of_all, unit="jobs",
        plot=chart,
    )  # fmt: skip


def repeats(data: Data) -> list[ReportTable]:
    """Return what repeated attempts say of chance; no table where no job has two."""
    rows: list[Row] = []
    n = 0
    for agent_id, runs in data.by_agent.items():
        by_task: defaultdict[str, list[bool]] = defaultdict(list)
        for run in sorted(runs, key=lambda r: (r.sample, r.run_id)):
            by_task[run.task_id].append(run.solved)
        several = [said for said in by_task.values() if len(said) > 1]
        if not several:
            continue
        n += len(several)
        model = ceiling.fit([(sum(said), len(said)) for said in several])
        rows.append({
            "agent": data.agents[agent_id].label, "jobs": len(several),
            "kappa": cohen_kappa([said[0] for said in several], [said[1] for said in several]),
            "alpha": None if model is None else model.a, "beta": None if model is None else model.b,
            "alike": None if model is None else model.alike,
            "oracle_auc": None if model is None else ceiling.oracle_auc(model),
            "ceiling": ceiling.ceiling(several),
        })  # fmt: skip
    if not rows:
        return []
    columns = [
        AGENT,
        count("jobs", "Jobs with repeats"),
        ReportColumn(name="kappa", title="Cohen's kappa, first and second"),
        ReportColumn(name="alpha", title="Alpha"),
        ReportColumn(name="beta", title="Beta"),
        ReportColumn(name="alike", title="Correlation of attempts"),
        ReportColumn(name="oracle_auc", title="AUC of who knows the chances"),
        ReportColumn(name="ceiling", title="AUC of two attempts for the third"),
    ]
    method = "Beta-binomial of largest likelihood (Skellam 1948) of all samples of a job; null where they all came to the same."
    return [table(data, "repeat_attempts", "Repeated attempts", columns, rows, method=method, n=n, unit="jobs")]


def tools(data: Data, jobs: Sequence[Jobs], options: PayWorthyOptions) -> list[ReportTable]:
    """Return the paper's Fig. 8; no table unless both agents are named. Raises Invalid ``unknown_agent``."""
    if options.base_agent is None or options.tool_agent is None:
        return []
    base, other = _named(data, jobs, options.base_agent), _named(data, jobs, options.tool_agent)
    both = sorted(set(base.tasks) & set(other.tasks))
    first, second = (_on(one, both) for one in (base, other))
    needs = first.groups(options.needs_facet)
    rows = [_gain(first, second, needs, name) for name in [ALL, *sorted(set(needs))]]
    columns = [
        ReportColumn(name="group", title="Needs"),
        count("jobs", "Jobs of both"),
        fraction("base", base.label),
        fraction("tools", other.label),
        fraction("gain", "Gain", interval=True),
        fraction("interaction", "Gain less that of all others", interval=True),
    ]
    method = f"Acceptance of the same jobs by both agents; jobs resampled within the group and the rest. {JOBS}"
    settings = {"seed": data.seed, "draws": DRAWS, "base": base.label, "tools": other.label}
    left = {"not done by both": len(base.runs) + len(other.runs) - 2 * len(both)}
    return [
        table(
            data, "tool_agent", "With tools and without", columns, rows, method=method, settings=settings, n=len(both),
            unit="jobs", excluded={k: v for k, v in left.items() if v},
        )
    ]  # fmt: skip


def _gain(first: Jobs, second: Jobs, needs: Sequence[str], name: str) -> Row:
    mine: Bools = np.asarray([name in (ALL, need) for need in needs], dtype=np.bool_)
    gain, _, step = interaction(first.accepted, second.accepted, mine, first.data.seed, DRAWS)
    return {
        "group": name, "jobs": gain.n,
        "base": float(first.accepted[mine].mean()) if mine.any() else None,
        "tools": float(second.accepted[mine].mean()) if mine.any() else None,
        "gain": gain.value, **bounds("gain", gain.interval),
        "interaction": step.value, **bounds("interaction", step.interval),
    }  # fmt: skip


def _named(data: Data, jobs: Sequence[Jobs], name: str) -> Jobs:
    agent = data.chosen(name)
    found = next((one for one in jobs if agent is not None and one.agent_id == agent.agent_id), None)
    if found is None:
        raise Invalid("unknown_agent", f"no agent {name!r} has a job that counts")
    return found


def _on(jobs: Jobs, tasks: Sequence[str]) -> Jobs:
    wanted = set(tasks)
    return jobs.only([n for n, task in enumerate(jobs.tasks) if task in wanted])

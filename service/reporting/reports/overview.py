"""The report of any evaluation: results of every agent, what was left out, why runs ended, what went wrong, repeats, costs."""

from collections import Counter

from service.domain.reports import ReportColumn, ReportHeader, ReportSettings, ReportTable
from service.domain.tasks import Strict
from service.reporting import causes, pass_at_k, success
from service.reporting.frames import Tables
from service.reporting.reports import gradings
from service.reporting.reports.comparison import against_reference
from service.reporting.reports.data import Data, Run, by_task, gather, mapping
from service.reporting.reports.making import (
    AGENT,
    BOOTSTRAP,
    WILSON,
    Row,
    bounds,
    common,
    count,
    fraction,
    options,
    table,
)
from service.reporting.reports.scores import Scores
from service.reporting.reports.spending import cost_against_score

MOST_K = (1, 2, 3, 5, 10)


class OverviewOptions(Strict):
    """None."""


def overview(tables: Tables, header: ReportHeader, settings: ReportSettings) -> list[ReportTable]:
    """Return the tables that fit every benchmark."""
    options(OverviewOptions, settings.options)
    data = gather(tables, header, settings)
    scores = Scores(data)
    found = [
        results(data, scores),
        exclusions(data),
        ends(data),
        failure_causes(data),
        cost_against_score(data, scores.scored(data.attempted)),
    ]
    return [*found, *repeats(data), *against_reference(data)]


def results(data: Data, scores: Scores) -> ReportTable:
    agents = list(data.agents)
    intervals = scores.intervals(agents, data.attempted)
    rows: list[Row] = []
    for agent in agents:
        runs, figures = data.by_agent[agent], scores.figures(agent, data.attempted)
        solved = sum(r.solved for r in runs)
        rows.append(
            {
                "agent": data.agents[agent].label,
                "runs": sum(r.agent_id == agent for r in data.runs),
                "counted": len(runs),
                "missing_tasks": figures.missing,
                "score": figures.macro,
                **bounds("score", intervals[agent]),
                "solved": solved,
                "solved_rate": solved / len(runs) if runs else None,
                **bounds("solved_rate", success.wilson(solved, len(runs)) if runs else None),
            }
        )
    columns = [
        AGENT,
        count("runs", "Runs"),
        count("counted", "Counted"),
        count("missing_tasks", "Tasks without a run"),
        fraction("score", "Mean score", interval=True),
        count("solved", "Solved"),
        fraction("solved_rate", "Solved of counted", interval=True),
    ]
    method = (
        "Score: mean over tasks of the mean over samples of `counted`; a task that the agent has no run of counts as the policy "
        "`missing` says, one whose runs are all excluded is left out. Solved: counted 1. "
        f"{BOOTSTRAP} Of the rate of solved: {WILSON}"
    )
    chart = {"mark": "bar", "x": "agent", "y": "score"}
    settings = common(data, missing=data.missing, tasks=len(data.attempted))
    notes = ["Several samples of a task are not independent: the Wilson interval of the rate is then too narrow."]
    return table(
        data,
        "results",
        "Results",
        columns,
        rows,
        method=method,
        settings=settings,
        notes=notes if _repeated(data) else (),
        plot=chart,
    )


def exclusions(data: Data) -> ReportTable:
    counts = Counter((r.agent_id, r.exclusion or "unknown") for r in data.runs if r.counted is None)
    rows: list[Row] = [
        {"agent": data.agents[agent].label, "exclusion": reason, "runs": n} for (agent, reason), n in counts.items()
    ]
    rows.sort(key=lambda row: (str(row["agent"]), str(row["exclusion"])))
    columns = [AGENT, ReportColumn(name="exclusion", title="Why"), count("runs", "Runs")]
    return table(
        data, "exclusions", "Left out", columns, rows, n=len(data.runs), method="Runs that no figure counts, by reason."
    )


def ends(data: Data) -> ReportTable:
    counts = Counter((r.agent_id, r.ended_because or "not ended") for r in data.runs)
    of_agent = Counter(r.agent_id for r in data.runs)
    rows: list[Row] = [
        {"agent": data.agents[agent].label, "ended_because": end, "runs": n, "share": n / of_agent[agent]}
        for (agent, end), n in counts.items()
    ]
    rows.sort(key=lambda row: (str(row["agent"]), str(row["ended_because"])))
    columns = [
        AGENT,
        ReportColumn(name="ended_because", title="End"),
        count("runs", "Runs"),
        fraction("share", "Share"),
    ]
    method = "Why agent phases ended, of all runs, counted or not."
    return table(data, "ends", "Why runs ended", columns, rows, n=len(data.runs), excluded={}, method=method)


def failure_causes(data: Data) -> ReportTable:
    """Return what failed items were failed for, where the method says it."""
    runs = {r.run_id: r for r in data.counted}
    failed = gradings.failed(data)
    said: dict[str, list[str]] = {agent: [] for agent in data.agents}
    for run_id, detail in failed.select("run_id", "detail").iter_rows():
        cause = mapping(detail).get("cause")
        if cause and run_id in runs:
            said[runs[run_id].agent_id].append(str(cause)[:100])
    rows: list[Row] = [
        {"agent": data.agents[agent].label, "cause": one.name, "items": one.count, "share": one.share}
        for agent, names in said.items()
        for one in causes.shares(names)
    ]
    columns = [AGENT, ReportColumn(name="cause", title="Cause"), count("items", "Items"), fraction("share", "Share")]
    n = sum(len(names) for names in said.values())
    excluded = {"no cause said": failed.height - n} if failed.height > n else {}
    method = "Failed items of the primary gradings that carry a cause: each cause's share of them."
    return table(
        data,
        "failure_causes",
        "Causes of failed items",
        columns,
        rows,
        n=n,
        unit="items",
        excluded=excluded,
        method=method,
    )


def repeats(data: Data) -> list[ReportTable]:
    """Return pass@k and pass^k where an agent has several samples of a task."""
    if not _repeated(data):
        return []
    rows: list[Row] = []
    for agent, runs in data.by_agent.items():
        samples = _samples(runs)
        most = max((len(s) for s in samples.values()), default=0)
        for k in (k for k in MOST_K if k <= most):
            found = pass_at_k.pass_at_k(samples, k)
            label = data.agents[agent].label
            rows.append({"agent": label, "k": k, "tasks": found.tasks, "any": found.any, "all": found.all})
    columns = [
        AGENT,
        count("k", "k"),
        count("tasks", "Tasks with k samples"),
        fraction("any", "At least one passes"),
        fraction("all", "All pass"),
    ]
    method = (
        "pass@k = mean of 1 - C(n-c,k)/C(n,k) (Chen et al. 2021); pass^k = mean of C(c,k)/C(n,k). Passed: counted 1."
    )
    return [table(data, "pass_at_k", "Several samples", columns, rows, method=method)]


def _samples(runs: list[Run]) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = {}
    for run in runs:
        found.setdefault(run.task_id, []).append(run.solved)
    return found


def _repeated(data: Data) -> bool:
    return any(len(by_task(runs, lambda r: r.value)) < len(runs) for runs in data.by_agent.values())

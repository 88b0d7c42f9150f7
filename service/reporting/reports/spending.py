"""What a score costs, what effort brings and what the scaffold adds, as tables."""

from collections.abc import Sequence

from service.domain.reports import ReportColumn, ReportTable
from service.reporting.costs import Scored, effort_place, effort_sweeps, frontier, scaffold_deltas
from service.reporting.reports.data import Data
from service.reporting.reports.making import AGENT, BOOTSTRAP, Row, bounds, common, count, fraction, table, usd

MODEL = ReportColumn(name="model", title="Model")
SCAFFOLD = ReportColumn(name="scaffold", title="Scaffold")
EFFORT = ReportColumn(name="effort", title="Effort")


def cost_against_score(data: Data, scored: Sequence[Scored]) -> ReportTable:
    best = frontier(scored)
    labels = {agent.label: agent_id for agent_id, agent in data.agents.items()}
    rows: list[Row] = []
    for one in scored:
        runs = data.by_agent[labels[one.agent]]
        retried = [r for r in runs if r.cost_usd_all_attempts is not None]
        rows.append(
            {
                "agent": one.agent,
                "score": one.score,
                "cost_usd": one.cost_usd,
                "cost_per_task_usd": one.cost_usd / len(one.by_task)
                if one.cost_usd is not None and one.by_task
                else None,
                "cost_all_attempts_usd": sum(r.cost_usd_all_attempts or 0.0 for r in retried) if retried else None,
                "unknown": sum(r.spent_usd is None for r in runs),
                "declared": sum(r.cost_basis == "declared" for r in runs),
                "frontier": one.agent in best,
            }
        )
    columns = [
        AGENT,
        fraction("score", "Mean score"),
        usd("cost_usd", "One pass over its tasks"),
        usd("cost_per_task_usd", "A task"),
        usd("cost_all_attempts_usd", "All attempts and samples"),
        count("unknown", "Runs of unknown cost"),
        count("declared", "Runs of declared cost"),
        ReportColumn(name="frontier", title="No other is better and no dearer"),
    ]
    method = (
        "Cost of a pass: sum over tasks of the mean over counted samples of what the graded attempt spent on models and services; "
        "null where that is unknown for a run. All attempts: what counted runs spent with attempts that infrastructure broke."
    )
    chart = {"mark": "point", "x": "cost_usd", "y": "score", "color": "agent"}
    title = "Cost against score"
    return table(
        data, "cost_against_score", title, columns, rows, method=method, settings={"missing": data.missing}, plot=chart
    )


def effort_sweep(data: Data, scored: Sequence[Scored]) -> ReportTable:
    rows: list[Row] = [
        {
            "scaffold": one.scaffold,
            "model": one.model,
            "effort": effort_place(one.effort)[1],
            "agent": one.agent,
            "score": one.score,
            "cost_usd": one.cost_usd,
        }
        for sweep in effort_sweeps(scored)
        for one in sweep
    ]
    columns = [SCAFFOLD, MODEL, EFFORT, AGENT, fraction("score", "Mean score"), usd("cost_usd", "One pass")]
    method = "Agents that differ in reasoning effort alone, in the order of effort."
    notes = () if rows else ("No model was run at two efforts in one scaffold.",)
    chart = {"mark": "line", "x": "effort", "y": "score", "color": "model"}
    return table(
        data, "effort_sweep", "Score by reasoning effort", columns, rows, method=method, notes=notes, plot=chart
    )


def scaffold_table(data: Data, scored: Sequence[Scored]) -> ReportTable:
    rows: list[Row] = [
        {
            "model": delta.model,
            "effort": delta.effort,
            "first": delta.first.agent,
            "second": delta.second.agent,
            "tasks": delta.tasks,
            "difference": delta.mean,
            **bounds("difference", delta.interval),
        }
        for delta in scaffold_deltas(scored, data.seed, data.settings.draws)
    ]
    columns = [
        MODEL,
        EFFORT,
        ReportColumn(name="first", title="First"),
        ReportColumn(name="second", title="Second"),
        count("tasks", "Tasks of both"),
        fraction("difference", "Second less first", interval=True),
    ]
    method = f"Mean over tasks that both did of the difference of their scores, one model and effort in two scaffolds. {BOOTSTRAP}"
    notes = () if rows else ("No model was run in two scaffolds.",)
    title = "What the scaffold adds"
    return table(data, "scaffold_deltas", title, columns, rows, method=method, settings=common(data), notes=notes)

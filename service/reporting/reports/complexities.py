"""How much work the tasks make, as a table (JobBench, Fig. 4b)."""

from collections.abc import Callable, Sequence

from service.domain.reports import ReportColumn, ReportTable
from service.reporting.complexity import measure
from service.reporting.reports.data import Data, Run
from service.reporting.reports.jobbench_options import JobBenchOptions
from service.reporting.reports.making import AGENT, Row, count, fraction, seconds, table

MEASURES: dict[str, Callable[[Run], float | None]] = {
    "wall_s": lambda r: r.wall_s,
    "working_s": lambda r: r.working_s,
    "turns": lambda r: float(r.turns),
    "tool_calls": lambda r: float(r.tool_calls),
    "events": lambda r: float(r.events),
}
_TITLES = {"turns": "Turns", "tool_calls": "Tool calls", "events": "Log lines"}
ALL = "all"


def complexity(data: Data, chosen: JobBenchOptions) -> ReportTable:
    """Return the medians for each agent and split; with a reference evaluation, their ratios to its runs."""
    reference = [r for r in data.counted if r.evaluation_id == chosen.reference_evaluation]
    rows: list[Row] = []
    for agent, runs in data.by_agent.items():
        mine = [
            r for r in runs if r.evaluation_id != chosen.reference_evaluation or chosen.reference_evaluation is None
        ]
        for split in _splits(data, mine, chosen.split_facet):
            part = [r for r in mine if split == ALL or split in data.tasks[r.task_id].values(chosen.split_facet)]
            rows.append(
                {"agent": data.agents[agent].label, "split": split, "runs": len(part), **_measured(part, reference)}
            )
    columns = [
        AGENT,
        ReportColumn(name="split", title="Split"),
        count("runs", "Runs"),
        fraction("mean_score", "Mean of counted"),
        seconds("wall_s", "Run time"),
        seconds("working_s", "Without waits"),
        *(count(name, title) for name, title in _TITLES.items()),
        *(ReportColumn(name=f"{name}_ratio", title=f"{name} to reference", unit="ratio") for name in MEASURES),
    ]
    notes = (
        []
        if reference or chosen.reference_evaluation is None
        else ["The reference evaluation has no counted run here."]
    )
    method = "Medians over counted runs. Ratio: of the median to that of all counted runs of the reference evaluation."
    settings = {"reference_evaluation": chosen.reference_evaluation, "split_facet": chosen.split_facet}
    return table(data, "complexity", "Complexity", columns, rows, method=method, settings=settings, notes=notes)


def _splits(data: Data, runs: Sequence[Run], facet: str) -> list[str]:
    values = {value for run in runs for value in data.tasks[run.task_id].values(facet)}
    return [ALL, *sorted(values)] if len(values) > 1 else [ALL]


def _measured(runs: Sequence[Run], reference: Sequence[Run]) -> Row:
    row: Row = {"mean_score": sum(r.value for r in runs) / len(runs) if runs else None}
    for name, of in MEASURES.items():
        found = measure((of(r) for r in runs), [of(r) for r in reference])
        row |= {name: found.median, f"{name}_ratio": found.ratio}
    return row

"""Money of solved tasks, as tables: Freelance's and RLI's earnings, and how they came in."""

from datetime import UTC

from service.domain.reports import Cell, ReportColumn, ReportTable
from service.reporting.dollars import Work, cumulative, dollars, thinned
from service.reporting.reports.data import Data, Run, by_task
from service.reporting.reports.making import AGENT, Row, count, fraction, table, usd

MOST_POINTS = 200
"""Of a curve; of longer ones so many are shown, evenly spread."""
UNPRICED = "tasks without a price are in no figure of money, and counted"


def works(data: Data, runs: list[Run]) -> list[Work]:
    """Return the tasks of one agent's counted runs; several samples make a share."""
    ends: dict[str, list[Run]] = {}
    for run in runs:
        ends.setdefault(run.task_id, []).append(run)
    solved = by_task(runs, lambda r: float(r.solved))
    last = {
        task: max((r.ended_at for r in mine if r.ended_at is not None), default=None) for task, mine in ends.items()
    }
    return [Work(data.tasks[task].price_usd, share, last[task]) for task, share in solved.items()]


def earnings(data: Data, name: str, title: str) -> ReportTable:
    rows: list[Row] = []
    for agent, runs in data.by_agent.items():
        found = dollars(works(data, runs))
        rows.append(
            {
                "agent": data.agents[agent].label,
                "priced": found.priced,
                "unpriced": found.unpriced,
                "earned_usd": found.earned_usd,
                "possible_usd": found.possible_usd,
                "share": found.share,
                "mean_price_usd": found.mean_price_of_solved_usd,
                "solved_unpriced": found.solved_unpriced,
            }
        )
    columns = [
        AGENT,
        count("priced", "Priced tasks"),
        count("unpriced", "Without a price"),
        usd("earned_usd", "Earned"),
        usd("possible_usd", "Could be earned"),
        fraction("share", "Share"),
        usd("mean_price_usd", "Mean price of a solved task"),
        count("solved_unpriced", "Solved without a price"),
    ]
    method = f"Sum of the prices of solved or accepted tasks, several samples of a task by their share; {UNPRICED}."
    return table(data, name, title, columns, rows, method=method, plot={"mark": "bar", "x": "agent", "y": "earned_usd"})


def value_over_time(data: Data) -> ReportTable:
    """Return the Freelance paper's Fig. 4: completions and value as they came in."""
    rows: list[Row] = []
    for agent, runs in data.by_agent.items():
        for point in thinned(cumulative(works(data, runs)), MOST_POINTS):
            at: Cell = (
                point.at.replace(tzinfo=point.at.tzinfo or UTC)
                .isoformat(timespec="milliseconds")
                .replace("+00:00", "Z")
            )
            label = data.agents[agent].label
            rows.append(
                {"agent": label, "at": at, "done": point.done, "solved": point.solved, "earned_usd": point.earned_usd}
            )
    columns = [
        AGENT,
        ReportColumn(name="at", title="Time"),
        count("done", "Tasks done"),
        count("solved", "Solved"),
        usd("earned_usd", "Earned"),
    ]
    method = f"After each task's last sample ended: what was solved and earned so far; at most {MOST_POINTS} points an agent."
    chart = {"mark": "line", "x": "at", "y": "earned_usd", "color": "agent"}
    return table(data, "cumulative_value", "Value over time", columns, rows, method=method, plot=chart)

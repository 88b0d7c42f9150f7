"""Tables of runs and of anything else."""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from workstead.cli.describe import hold, seconds, verdict
from workstead.cli.figures import Figures, by_agent
from workstead.models import Run
from workstead.terminal import one_line


def plain_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table of anything; cells may be untrusted text, None is a dash."""
    table = _table("", *columns)
    for row in rows:
        _add(table, *("-" if cell is None else one_line(str(cell), 200) for cell in row))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _add(table: Table, *cells: str, style: str = "") -> None:
    table.add_row(*(Text(cell) for cell in cells), style=style)


def runs_table(runs: Sequence[Run]) -> Table:
    table = _table("", "run", "task", "agent", "k", "phase", "ended because", "verdict", "wall")
    for r in runs:
        _add(
            table,
            one_line(r.id),
            one_line(r.task.name),
            one_line(r.agent.label),
            str(r.sample),
            one_line(" ".join(part for part in (r.phase, hold(r)) if part)),
            one_line(r.ended_because or ""),
            verdict(r) if r.done else "",
            seconds(r.wall_s),
        )
    return table


def results_table(runs: Sequence[Run]) -> Table:
    """One row per run: what was decided, and how much was delivered."""
    table = _table("Runs", "agent", "task", "k", "outcome", "ended because", "score", "wall", "delivered")
    for r in sorted(runs, key=lambda r: (r.agent.label, r.task.name, r.sample)):
        style = "" if r.outcome == "graded" else "yellow"
        _add(
            table,
            one_line(r.agent.label),
            one_line(r.task.name),
            str(r.sample),
            one_line(r.outcome or r.phase),
            one_line(r.ended_because or ""),
            verdict(r),
            seconds(r.wall_s),
            f"{r.deliverable.files} files",
            style=style,
        )
    return table


def verdict_table(runs: Sequence[Run]) -> Table:
    """One row per agent, with its denominator and what that leaves out."""
    table = _table("Verdicts", "agent", "n", "graded", "passed", "pass rate [95 %]", "mean score", "left out")
    for label, own in by_agent(runs).items():
        _add(
            table,
            one_line(label),
            str(own.n),
            f"{own.graded} ({own.overridden} overridden)" if own.overridden else str(own.graded),
            f"{own.passed}/{own.graded}",
            rate(own),
            "-" if own.mean is None else f"{own.mean:.3f}",
            left_out(own),
        )
    return table


def rate(own: Figures) -> str:
    if own.pass_rate is None or own.interval is None:
        return "-"
    low, high = own.interval
    return f"{own.pass_rate:.3f} [{low:.3f}, {high:.3f}]"


def left_out(own: Figures) -> str:
    """Say how many runs have no score, by outcome and cause."""
    return one_line(", ".join(f"{n} {why}" for why, n in own.left_out.items())) or "none"

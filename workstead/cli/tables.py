"""Tables of runs."""

from collections import defaultdict
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from workstead.cli.describe import seconds, verdict
from workstead.models import Run
from workstead.terminal import one_line


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
            one_line(r.phase),
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
    table = _table("Verdicts", "agent", "n", "graded", "passed", "mean score", "left out")
    by_agent: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_agent[run.agent.label].append(run)
    for label, own in sorted(by_agent.items()):
        fractions = [r.verdict.fraction for r in own if r.outcome == "graded" and r.verdict.fraction is not None]
        passed = sum(r.outcome == "graded" and r.verdict.passed is True for r in own)
        mean = f"{sum(fractions) / len(fractions):.3f}" if fractions else "-"
        _add(
            table,
            one_line(label),
            str(len(own)),
            str(len(fractions)),
            f"{passed}/{len(fractions)}",
            mean,
            left_out(own),
        )
    return table


def left_out(runs: Sequence[Run]) -> str:
    """Say how many runs have no score, by outcome and cause."""
    counts: dict[str, int] = defaultdict(int)
    for r in runs:
        if r.outcome != "graded":
            counts[f"{r.outcome or r.phase} ({r.ended_because or 'not ended'})"] += 1
    return one_line(", ".join(f"{n} {why}" for why, n in sorted(counts.items()))) or "none"

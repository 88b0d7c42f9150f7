"""``workstead eval leaderboard``, ``plot`` and ``series``: figures for other programs and for the eye."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.cli.common import emit, in_words, line, out
from workstead.cli.eval import options as o
from workstead.cli.eval.results import Ids, Kind, Settings, report_settings
from workstead.cli.eval.service import service
from workstead.cli.options import Json
from workstead.cli.tables import plain_table
from workstead.sync import Client

FORMATS = ("svg", "png")
Document = Annotated[Path | None, typer.Option("--output", "-o", help="New file for the JSON, as the site reads it")]
Picture = Annotated[Path, typer.Option("--output", "-o", help="New file, .svg or .png", show_default=False)]
Table = Annotated[str, typer.Argument(help="Table of the report that has a plot", show_default=False)]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="done, graded, earned_usd, spend_usd, score; repeatable")
]
ByAgent = Annotated[bool, typer.Option("--by-agent", help="A line for each agent")]
Step = Annotated[float | None, typer.Option("--step", min=1, help="Seconds between points")]


@in_words
def leaderboard(ids: Ids, settings: Settings = None, output: Document = None, as_json: Json = False) -> None:
    """Rank the agents in the layout of JobBench's site; `--set options.aggregate=micro` ranks as the site does."""
    with service() as there, Client(there.url, there.token) as client:
        found = client.reports.leaderboard(ids, settings=report_settings(settings))
    if output is not None:
        with output.open("x", encoding="utf-8") as file:
            json.dump(found, file, ensure_ascii=False, indent=1, allow_nan=False)
            file.write("\n")
    if as_json:
        emit(found)
        return
    _ranked(found)
    if output is not None:
        line(f"written to {output}")


@in_words
def plot(evaluation: o.Id, table: Table, output: Picture, kind: Kind = None) -> None:
    """Draw one of the report's tables into a file."""
    format = output.suffix.removeprefix(".")
    if format not in FORMATS:
        raise typer.BadParameter(f"{output}: draw .svg or .png")
    with service() as there, Client(there.url, there.token) as client:
        data = client.reports.plot(evaluation, table, format=format, kind=kind)
    with output.open("xb") as file:
        file.write(data)
    line(f"{output}: {len(data)} bytes")


@in_words
def series(
    evaluation: o.Id, metric: Metrics = None, by_agent: ByAgent = False, step: Step = None, as_json: Json = False
) -> None:
    """Print figures as they grew, such as the dollars earned so far; --json has every point."""
    names = metric or ["done", "score"]
    with service() as there, Client(there.url, there.token) as client:
        found = client.evaluations.series(evaluation, names, by="agent" if by_agent else None, step_s=step)
    if as_json:
        emit(found)
        return
    rows = [
        (one.get("agent") or "all", name, f"{seconds:.0f} s", f"{value:g}")
        for one in found["series"]
        for name, points in one["points"].items()
        for seconds, value in points
    ]
    out.print(plain_table(("agent", "figure", "after", "value"), rows))


def _ranked(found: dict[str, Any]) -> None:
    names = ("rank", "displayName", "framework", "overallScore", "totalScore", "maxScore", "tasksEvaluated")
    columns = ("rank", "agent", "framework", "score %", "points", "of", "tasks")
    out.print(plain_table(columns, [[row.get(name) for name in names] for row in found["leaderboard"]]))
    rest = f"{found.get('totalTasks')} tasks, missing ones: {found.get('missing')}"
    line(f"ranked by {found.get('aggregate')}; {rest}; plan {found.get('plan')}", "dim")

"""Options that several commands of ``eval`` take."""

from pathlib import Path
from typing import Annotated

import typer

Id = Annotated[str, typer.Argument(help="Evaluation, eval_…", show_default=False)]
Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", "-a", help="SCAFFOLD:MODEL@EFFORT, or an agent's label or id; repeatable"),
]
OfAgent = Annotated[str | None, typer.Option("--agent", "-a", help="Only this agent: label or id")]
OfModel = Annotated[str | None, typer.Option("--model", help="Only agents of this model")]
Samples = Annotated[
    int, typer.Option("--samples", "-k", "--epochs", "--n-attempts", min=1, max=100, help="Runs per task and agent")
]
Include = Annotated[list[str] | None, typer.Option("--include", help="Glob of items wanted; repeatable")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="Glob of items not wanted; repeatable")]
Facet = Annotated[list[str] | None, typer.Option("--facet", help="KEY=VALUE that tasks have; the same key again: or")]
Most = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Draw so many tasks, by the seed")]
Seed = Annotated[int, typer.Option(min=0, help="Of the draw of tasks and of every interval")]
Plan = Annotated[str | None, typer.Option("--plan", help="Grading plan, NAME@VERSION; default: the tasks' own graders")]
Budget = Annotated[
    float | None, typer.Option("--budget", min=0, help="Dollars for the agents; then nothing more begins")
]
JudgesBudget = Annotated[float | None, typer.Option("--judges-budget", min=0, help="Dollars for the judges")]
OrderOf = Annotated[str, typer.Option("--order", help="breadth: a sample of everything before the second; or depth")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the evaluation")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE; repeatable")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what it would be and what it may take, and leave nothing")
]
Skip = Annotated[bool, typer.Option("--skip-preflight", help="Start without trying anything out; this is recorded")]
Detach = Annotated[bool, typer.Option("--detach", help="Start and leave")]
Spec = Annotated[
    Path, typer.Argument(help="Evaluation as YAML or JSON (docs/evaluations.md)", exists=True, dir_okay=False)
]
Reason = Annotated[str, typer.Option("--reason", help="Why, for its log")]

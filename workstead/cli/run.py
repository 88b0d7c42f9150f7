"""``workstead run``: agents on tasks, each so many samples, watched to the end."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import GRADED, UNGRADED, fail, in_words, labels_of, line, out
from workstead.cli.describe import name
from workstead.cli.fetch import fetch
from workstead.cli.tables import results_table, verdict_table
from workstead.cli.watch import watch
from workstead.models import Run

Tasks = Annotated[list[Path], typer.Argument(help="Task directories", show_default=False)]
AgentNames = Annotated[list[str] | None, typer.Option("--agent", "-a", help="Label or id of an agent; repeatable")]
Scaffolds = Annotated[list[Path] | None, typer.Option("--scaffold", help="Scaffold manifest to register; repeatable")]
Samples = Annotated[int, typer.Option("--samples", "-k", min=1, max=1000, help="Runs per task and agent")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE on every run; repeatable")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the deliverables")]


@in_words
def run(
    tasks: Tasks,
    agent: AgentNames = None,
    scaffold: Scaffolds = None,
    samples: Samples = 1,
    label: Labels = None,
    output: Output = Path("workstead_output"),
) -> None:
    """Run agents on tasks and wait for the verdicts.

    Exit code 0: all graded; 3: some ungraded; 1: could not be run.
    """
    if not agent and not scaffold:
        raise fail("name an agent (-a) or a scaffold (--scaffold)", 2)
    runs = asyncio.run(_run(tasks, agent or [], scaffold or [], samples, labels_of(label), output))
    raise typer.Exit(GRADED if all(r.outcome == "graded" for r in runs) else UNGRADED)


async def _run(
    tasks: Sequence[Path],
    agents: Sequence[str],
    scaffolds: Sequence[Path],
    samples: int,
    labels: dict[str, str],
    output: Path,
) -> Sequence[Run]:
    async with AsyncClient() as client:
        names = [*agents, *[await agent_of(client, path) for path in scaffolds]]
        runs = await submit(client, [(await client.tasks.create(path)).id for path in tasks], names, samples, labels)
        line(f"{len(runs)} runs submitted to {client.url}")
        try:
            ended = await watch(client, runs)
        except asyncio.CancelledError:
            line("the runs go on; `workstead runs list` and `workstead runs stop` look after them", "yellow")
            raise
        await report(client, ended, output)
        return ended


async def agent_of(client: AsyncClient, scaffold: Path) -> str:
    """Register a scaffold and return the id of the agent that is nothing but it."""
    registered = await client.scaffolds.register(scaffold)
    return (await client.agents.create(registered.ref)).id


async def submit(
    client: AsyncClient, tasks: Sequence[str], agents: Sequence[str], samples: int, labels: dict[str, str]
) -> list[Run]:
    """Submit in breadth: one sample of everything before the second, so that partial tables compare like with like."""
    return [
        await client.runs.create(task, agent, sample=k, labels=labels)
        for k in range(1, samples + 1)
        for task in tasks
        for agent in agents
    ]


async def report(client: AsyncClient, runs: Sequence[Run], output: Path) -> dict[str, Path]:
    """Download what was delivered and print the tables; return run id → folder."""
    places: dict[str, Path] = {}
    for one in runs:
        if (folder := await fetch(client, one, output)) is not None:
            places[one.id] = folder
    out.print(results_table(runs))
    out.print(verdict_table(runs))
    for one in runs:
        line(f"deliverable of {name(one)}: {places.get(one.id, 'none')}")
    return places

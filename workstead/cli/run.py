"""``workstead run``: agents on tasks, each so many samples, watched to the end."""

import asyncio
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, GRADED, UNGRADED, USAGE, emit, fail, in_words, labels_of, line, out
from workstead.cli.describe import name
from workstead.cli.fetch import Fetched, fetch
from workstead.cli.figures import by_agent
from workstead.cli.options import Json
from workstead.cli.selection import Narrowing, select
from workstead.cli.tables import results_table, verdict_table
from workstead.cli.watch import Show, note, watch
from workstead.errors import Disconnected
from workstead.models import Run

BATCH = "batch"
"""Label that the runs of one command share, so that they can be found again."""

Tasks = Annotated[
    list[str] | None,
    typer.Argument(
        help="Task directories (or folders of them), task ids, task names, benchmark:NAME[@VERSION]",
        show_default=False,
    ),
]
AgentNames = Annotated[list[str] | None, typer.Option("--agent", "-a", help="Label or id of an agent; repeatable")]
Scaffolds = Annotated[
    list[str] | None, typer.Option("--scaffold", help="Scaffold manifest to register, or NAME@VERSION; repeatable")
]
Samples = Annotated[
    int, typer.Option("--samples", "-k", "--epochs", "--n-attempts", min=1, max=1000, help="Runs per task and agent")
]
Priority = Annotated[int, typer.Option(help="Higher goes first within the project")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE on every run; repeatable")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the deliverables")]
Benchmark = Annotated[list[str] | None, typer.Option("--benchmark", "-b", help="NAME[@VERSION]; repeatable")]
Include = Annotated[list[str] | None, typer.Option("--include", help="Glob of task names wanted; repeatable")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="Glob of task names not wanted; repeatable")]
Facet = Annotated[list[str] | None, typer.Option("--facet", help="KEY=VALUE that the tasks bear; repeatable")]
TaskLimit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Most tasks")]
Seed = Annotated[int | None, typer.Option(help="Take the --limit as a random sample that this number repeats")]
Fetching = Annotated[bool, typer.Option("--download/--no-download", help="Whether to fetch what was delivered")]
Progress = Annotated[Show, typer.Option(help="What to print meanwhile")]
Detach = Annotated[bool, typer.Option("--detach", help="Submit, print the runs and leave")]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run and how it is to be shown."""

    tasks: Sequence[str]
    narrowing: Narrowing
    agents: Sequence[str]
    scaffolds: Sequence[str]
    samples: int
    labels: dict[str, str] = field(default_factory=dict[str, str])
    priority: int = 0
    output: Path | None = None
    show: Show = "auto"
    as_json: bool = False
    detach: bool = False


@in_words
def run(
    tasks: Tasks = None,
    benchmark: Benchmark = None,
    agent: AgentNames = None,
    scaffold: Scaffolds = None,
    samples: Samples = 1,
    include: Include = None,
    exclude: Exclude = None,
    facet: Facet = None,
    limit: TaskLimit = None,
    seed: Seed = None,
    priority: Priority = 0,
    label: Labels = None,
    output: Output = Path("workstead_output"),
    download: Fetching = True,
    progress: Progress = "auto",
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Run agents on tasks and wait for the verdicts.

    Exit code 0: all graded; 3: some ungraded; 1: could not be run; 130: Ctrl-C (the runs go on).
    """
    words = [*(tasks or []), *(f"benchmark:{name}" for name in benchmark or [])]
    if not agent and not scaffold:
        raise fail("name an agent (-a) or a scaffold (--scaffold)", USAGE)
    if not words:
        raise fail("name a task, or a benchmark (--benchmark)", USAGE)
    labels = {BATCH: secrets.token_hex(4), **labels_of(label)}
    order = Order(
        words,
        Narrowing(include or [], exclude or [], labels_of(facet), limit, seed),
        agent or [],
        scaffold or [],
        samples,
        labels,
        priority,
        output if download and not as_json else None,
        "none" if as_json and progress == "auto" else progress,
        as_json,
        detach,
    )
    runs = asyncio.run(_run(order))
    raise typer.Exit(GRADED if detach or all(r.outcome == "graded" for r in runs) else UNGRADED)


async def _run(order: Order) -> Sequence[Run]:
    async with AsyncClient() as client:
        names = [*order.agents, *[await agent_of(client, s) for s in order.scaffolds]]
        tasks = await select(client, order.tasks, order.narrowing)
        batch = order.labels[BATCH]
        note(f"submitting {len(tasks) * len(names) * order.samples} runs to {client.url}, label {BATCH}={batch}")
        try:
            runs = await submit(client, tasks, names, order.samples, order.labels, order.priority)
            if not order.detach:
                runs = await watch(client, runs, show=order.show)
        except asyncio.CancelledError:
            note(go_on(batch))
            raise
        except Disconnected as error:
            raise fail(f"{error}\n{go_on(batch)}", FAILED) from error
        await show_runs(client, runs, order)
        return runs


def go_on(batch: str) -> str:
    """Say how to go on with runs that nobody watches any more."""
    label = f"--label {shlex.quote(f'{BATCH}={batch}')}"
    return f"the runs go on: `workstead runs watch {label}` follows them, `workstead runs stop {label}` stops them"


async def agent_of(client: AsyncClient, scaffold: str | Path) -> str:
    """Register a scaffold (or take ``NAME@VERSION``) and return the id of the agent that is nothing but it."""
    ref = str(scaffold) if _is_registered(scaffold) else (await client.scaffolds.register(scaffold)).ref
    return (await client.agents.create(ref)).id


def _is_registered(scaffold: str | Path) -> bool:
    return isinstance(scaffold, str) and "@" in scaffold and not Path(scaffold).exists()


async def submit(
    client: AsyncClient,
    tasks: Sequence[str],
    agents: Sequence[str],
    samples: int,
    labels: dict[str, str],
    priority: int = 0,
) -> list[Run]:
    """Submit in breadth: one sample of everything before the second, so that partial tables compare like with like."""
    return [
        await client.runs.create(task, agent, sample=k, labels=labels, priority=priority)
        for k in range(1, samples + 1)
        for task in tasks
        for agent in agents
    ]


async def show_runs(client: AsyncClient, runs: Sequence[Run], order: Order) -> None:
    if order.as_json:
        agents = {label: own.as_json() for label, own in by_agent(runs).items()}
        emit({"runs": [r.model_dump(mode="json") for r in runs], "agents": agents})
    elif order.detach:
        for one in runs:
            line(one.id)
        note(go_on(order.labels[BATCH]))
    else:
        await report(client, runs, order.output)


async def report(client: AsyncClient, runs: Sequence[Run], output: Path | None) -> dict[str, Fetched]:
    """Download what was delivered (if ``output`` is given) and print the tables; return run id → what was fetched."""
    places: dict[str, Fetched] = {}
    for one in runs if output is not None else ():
        if (fetched := await fetch(client, one, output or Path())) is not None:
            places[one.id] = fetched
    out.print(results_table(runs))
    out.print(verdict_table(runs))
    for one in runs if output is not None else ():
        line(f"deliverable of {name(one)}: {places[one.id].folder if one.id in places else 'none'}")
        for said in places[one.id].skipped if one.id in places else ():
            note(f"{one.id}: {said}")
    return places

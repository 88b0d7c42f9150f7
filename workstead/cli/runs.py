"""``workstead runs …``: list, show, watch, stop, delete."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import GRADED, UNGRADED, USAGE, emit, fail, in_words, line, out
from workstead.cli.options import Json, LabelIs, Limit, OfAgent, OfTask, Outcome, Phase, Where, Yes
from workstead.cli.run_again import rerun
from workstead.cli.run_bundle import bundle
from workstead.cli.run_confirm import confirm
from workstead.cli.run_events import events
from workstead.cli.run_film import film
from workstead.cli.run_filters import run_query
from workstead.cli.run_logs import logs
from workstead.cli.run_page import show
from workstead.cli.run_screenshot import screenshot
from workstead.cli.run_shell import shell
from workstead.cli.tables import results_table, runs_table, verdict_table
from workstead.cli.watch import Show, note, watch
from workstead.models import Run

runs_app = typer.Typer(help="Look at runs and stop them.", no_args_is_help=True)
runs_app.command()(show)
runs_app.command()(events)
runs_app.command()(logs)
runs_app.command()(rerun)
runs_app.command()(shell)
runs_app.command()(screenshot)
runs_app.command()(film)
runs_app.command()(bundle)
runs_app.command()(confirm)

Ids = Annotated[list[str] | None, typer.Argument(help="Runs, run_…; or choose by options", show_default=False)]
Mode = Annotated[
    Literal["finish", "collect", "discard"],
    typer.Option(help="finish: deadline now + grace; collect: kill and grade; discard: kill and cancel"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say which")]
ShowWhat = Annotated[Show, typer.Option("--progress", help="What to print meanwhile")]
ENDED = "done"


@runs_app.command("list")
@in_words
def list_runs(
    phase: Phase = None,
    outcome: Outcome = None,
    agent: OfAgent = None,
    task: OfTask = None,
    label: LabelIs = None,
    where: Where = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List runs, newest first. With --json one object per line."""

    async def read() -> list[Run]:
        async with AsyncClient() as client:
            query = await run_query(
                client, phase=phase, outcome=outcome, agent=agent, task=task, label=label, where=where
            )
            return [run async for run in client.runs.list(query, limit=limit)]

    runs = asyncio.run(read())
    if not as_json:
        out.print(runs_table(runs))
    for run in runs if as_json else ():
        emit(run)


@runs_app.command("watch")
@in_words
def watch_runs(
    ids: Ids = None,
    agent: OfAgent = None,
    task: OfTask = None,
    label: LabelIs = None,
    where: Where = None,
    limit: Limit = 1000,
    progress: ShowWhat = "auto",
) -> None:
    """Follow runs that are there already to their end and print the tables.

    Exit code 0: all graded; 3: some ungraded.
    """

    async def follow() -> Sequence[Run]:
        async with AsyncClient() as client:
            query = await run_query(client, agent=agent, task=task, label=label, where=where)
            chosen = await _chosen(client, ids, query, limit)
            try:
                return await watch(client, chosen, show=progress)
            except asyncio.CancelledError:
                note("the runs go on; the same command follows them again")
                raise

    runs = asyncio.run(follow())
    out.print(results_table(runs))
    out.print(verdict_table(runs))
    raise typer.Exit(GRADED if all(r.outcome == "graded" for r in runs) else UNGRADED)


@runs_app.command()
@in_words
def stop(
    ids: Ids = None,
    mode: Mode = "collect",
    phase: Phase = None,
    agent: OfAgent = None,
    task: OfTask = None,
    label: LabelIs = None,
    where: Where = None,
    limit: Limit = 10_000,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Stop runs: those named, or all that the options choose (asks first)."""

    async def work() -> list[Run]:
        async with AsyncClient() as client:
            query = await run_query(client, phase=phase, agent=agent, task=task, label=label, where=where)
            runs = [r for r in await _chosen(client, ids, query, limit) if r.phase != ENDED]
            if dry_run or not runs:
                return runs
            if not ids and not yes:
                typer.confirm(f"Stop {len(runs)} runs ({mode})?", abort=True, err=True)
            return [await client.runs.stop(run.id, mode) for run in runs]

    for run in (stopped := asyncio.run(work())):
        emit(run) if as_json else line(f"{run.id}: {run.phase}")
    note(f"{len(stopped)} runs {'would be ' if dry_run else ''}asked to stop ({mode})")


@runs_app.command()
@in_words
def delete(ids: Annotated[list[str], typer.Argument(help="Runs that have ended", show_default=False)]) -> None:
    """Delete runs with their events, deliverables and verdicts."""

    async def work() -> None:
        async with AsyncClient() as client:
            for run_id in ids:
                await client.runs.delete(run_id)
                line(f"{run_id}: deleted")

    asyncio.run(work())


async def _chosen(
    client: AsyncClient, ids: Sequence[str] | None, query: Mapping[str, str | list[str]], limit: int
) -> list[Run]:
    """Return the runs named, or those that the query finds. Naming nothing at all is a mistake, not "everything"."""
    if ids and query:
        raise fail("name runs or choose them by options, not both", USAGE)
    if ids:
        return [await client.runs.get(run_id) for run_id in ids]
    if not query:
        raise fail("name runs, or choose them (--label, --agent, --task, --filter)", USAGE)
    return [run async for run in client.runs.list(query, limit=limit)]

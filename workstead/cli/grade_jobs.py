"""``workstead grade dead-letter``, ``replay`` and ``cancel``: what became of gradings that nobody could decide."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import emit, in_words, line, out
from workstead.cli.options import Json
from workstead.cli.tables import plain_table
from workstead.models import DeadLetter

_Move = Callable[[AsyncClient, dict[str, Any]], Awaitable[tuple[int, bool]]]
Ids = Annotated[list[str] | None, typer.Argument(help="Gradings, grd_…", show_default=False)]
Cause = Annotated[list[str] | None, typer.Option("--cause", help="Of this cause; may be repeated", show_default=False)]
Method = Annotated[list[str] | None, typer.Option("--method", help="Of this method", show_default=False)]
Plan = Annotated[list[str] | None, typer.Option("--plan", help="Under this plan, name@version", show_default=False)]
Run = Annotated[list[str] | None, typer.Option("--run", help="Of this run", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="All there are")]


def add_to(app: typer.Typer) -> None:
    app.command("dead-letter")(dead_letter)
    app.command("replay")(replay)
    app.command("cancel")(cancel)


@in_words
def dead_letter(as_json: Json = False) -> None:
    """Show how many gradings failed, by cause and method. `grade replay --cause …` puts them back."""
    found = asyncio.run(_dead_letter())
    for row in found if as_json else ():
        emit(row)
    if not as_json:
        rows = [(r.cause, r.method, r.gradings, r.runs, r.oldest_at, r.newest_at) for r in found]
        out.print(plain_table(("cause", "method", "gradings", "runs", "oldest", "newest"), rows))


@in_words
def replay(
    ids: Ids = None, cause: Cause = None, method: Method = None, plan: Plan = None, run: Run = None, all_: All = False
) -> None:
    """Put failed gradings back into their queues. Votes that judges gave stay: only what is missing is asked for."""
    chosen = _chosen(ids, cause, method, plan, run, all_)
    line(f"{asyncio.run(_moved(lambda client, which: client.gradings.replay(which), chosen))} gradings replayed")


@in_words
def cancel(
    ids: Ids = None, cause: Cause = None, method: Method = None, plan: Plan = None, run: Run = None, all_: All = False
) -> None:
    """End open gradings as failed, cause `cancelled`; --cause is what they wait for."""
    chosen = _chosen(ids, cause, method, plan, run, all_)
    line(f"{asyncio.run(_moved(lambda client, which: client.gradings.cancel_all(which), chosen))} gradings cancelled")


async def _dead_letter() -> Sequence[DeadLetter]:
    async with AsyncClient() as client:
        return await client.gradings.dead_letter()


async def _moved(move: _Move, chosen: dict[str, Any]) -> int:
    """Move them all, 200 at a time."""
    total, more = 0, True
    async with AsyncClient() as client:
        while more:
            count, more = await move(client, chosen)
            total += count
    return total


def _chosen(
    ids: list[str] | None,
    cause: list[str] | None,
    method: list[str] | None,
    plan: list[str] | None,
    run: list[str] | None,
    all_: bool,
) -> dict[str, Any]:
    named = {"ids": ids, "cause": cause, "method": method, "plan": plan, "run_id": run}
    chosen: dict[str, Any] = {name: values for name, values in named.items() if values}
    if not chosen and not all_:
        raise typer.BadParameter("name gradings, or --cause, --method, --plan, --run; or --all")
    return chosen or {"all": True}

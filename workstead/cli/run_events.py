"""``workstead runs events``: the numbered log of a run."""

from collections.abc import Iterator
from typing import Annotated

import typer

from workstead.cli.common import RunId, emit, in_words
from workstead.cli.options import Json
from workstead.cli.watch import Watched, print_event
from workstead.models import Event
from workstead.sync import Client

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Until the run is done")]
After = Annotated[int, typer.Option(min=0, help="Only events with a higher number")]
Types = Annotated[list[str] | None, typer.Option("--types", help="Only events of this type; repeatable or with commas")]
Coarse = Annotated[bool, typer.Option("--coarse", help="Without output and resource samples")]


@in_words
def events(
    run_id: RunId,
    follow: Follow = False,
    after: After = 0,
    types: Types = None,
    coarse: Coarse = False,
    as_json: Json = False,
) -> None:
    """Print a run's events; with --follow as they come, to the end. With --json one object per line."""
    chosen = [name for given in types or [] for name in given.split(",") if name]
    detail = "coarse" if coarse else "full"
    with Client() as client:
        watched = Watched(client.runs.get(run_id))
        found = (
            client.runs.events(run_id, after=after, types=chosen, detail=detail)
            if follow
            else stored(client, run_id, after, chosen, detail)
        )
        for event in found:
            emit(event) if as_json else print_event(watched, event)


def stored(client: Client, run_id: str, after: int, types: list[str], detail: str = "full") -> Iterator[Event]:
    """Yield the events that there are now, page by page."""
    while page := client.runs.events_page(run_id, after=after, types=types, detail=detail):
        yield from page
        after = page[-1].seq

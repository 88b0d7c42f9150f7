"""Many runs watched at once: their events as they come, and one display."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.live import Live
from rich.table import Table
from rich.text import Text

from workstead.aio import AsyncClient
from workstead.cli.common import out
from workstead.cli.describe import describe, name, verdict
from workstead.models import Event, Run
from workstead.terminal import one_line

STREAMS = 64
"""Runs watched by a stream of their own at once; the others wait for a place."""
TAIL_CHARS = 2000


@dataclass(slots=True)
class Watched:
    """A run as last heard of."""

    run: Run
    phase: str = ""
    output: str = ""
    events: int = 0

    def take(self, event: Event) -> None:
        self.events = event.seq
        if event.type == "run.phase":
            self.phase = str(event.payload.get("phase", self.phase))
        elif event.type == "output":
            self.output = (self.output + str(event.payload.get("text", "")))[-TAIL_CHARS:]


Heard = Callable[[Watched, Event], None]


async def watch(client: AsyncClient, runs: Sequence[Run], heard: Heard | None = None) -> list[Run]:
    """Follow runs to their end with a live table on a terminal, else line by line; return them as they ended."""
    watched = [Watched(run, run.phase) for run in runs]
    if heard is None and out.is_terminal:
        with Live(get_renderable=lambda: progress(watched), console=out, refresh_per_second=4):
            return await _follow_all(client, watched, lambda _w, _e: None)
    return await _follow_all(client, watched, heard or print_event)


async def _follow_all(client: AsyncClient, watched: Sequence[Watched], heard: Heard) -> list[Run]:
    places = asyncio.Semaphore(STREAMS)

    async def follow(one: Watched) -> Run:
        async with places:
            async for event in client.runs.events(one.run.id):
                one.take(event)
                heard(one, event)
            one.run = await client.runs.wait(one.run.id)
            one.phase = one.run.phase
            return one.run

    tasks = [asyncio.create_task(follow(one)) for one in watched]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def print_event(watched: Watched, event: Event) -> None:
    """Print an event, one line per line of what it says."""
    stamp = event.ts.strftime("%H:%M:%S.%f")[:-3] if event.ts else ""
    for said in describe(event):
        head = f"{stamp} {name(watched.run):<58} {event.seq:>4} {one_line(event.type, 24):<18} "
        out.print(Text(head, style="dim").append(said, style="default"))


def progress(watched: Sequence[Watched]) -> Table:
    """Return the live table; past 30 runs only those that move, and a count."""
    table = Table(box=None, pad_edge=False)
    for column in ("run", "phase", "events", "doing"):
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    active = [w for w in watched if w.phase not in ("queued", "held", "done")]
    for w in list(watched) if len(watched) <= 30 else active[:30]:
        said = verdict(w.run) if w.run.done else one_line(w.output, 80)
        table.add_row(Text(name(w.run)), Text(one_line(w.phase, 20)), Text(str(w.events)), Text(said))
    done = sum(w.run.done for w in watched)
    table.caption = f"{done} of {len(watched)} done"
    return table

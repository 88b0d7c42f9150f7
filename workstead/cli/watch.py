"""Many runs watched at once: their events as they come, and one display."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.live import Live
from rich.table import Table
from rich.text import Text

from workstead.aio import AsyncClient
from workstead.cli.common import err, line, out
from workstead.cli.describe import describe, hold, name, seconds, verdict
from workstead.cli.together import together
from workstead.errors import Disconnected
from workstead.models import Event, Run
from workstead.terminal import one_line

STREAMS = 48
"""Runs watched by a stream of their own at once; the others wait for a place. The service allows 100 per token."""
TAIL_CHARS = 2000
PATIENCE_S = 900.0
"""How long the service may be away before watching gives up; the runs do not depend on it."""
AWAY_PAUSE_S = 2.0
LIVE_ROWS = 30
PRINT_EVENTS_UP_TO = 16
"""Runs whose events are printed where no terminal is; of more, only the end of each."""

Show = Literal["auto", "live", "events", "runs", "none"]


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
Ended = Callable[[Watched], None]


async def watch(client: AsyncClient, runs: Sequence[Run], heard: Heard | None = None, show: Show = "auto") -> list[Run]:
    """Follow runs to their end and return them as they ended. ``heard`` replaces what ``show`` would print.

    ``auto``: a live table on a terminal, else events, else (many runs) a line per run that ends. A service that is
    away is waited for. Raises Problem, ProtocolError; Disconnected after PATIENCE_S without it.
    """
    watched = [Watched(run, run.phase) for run in runs]
    if heard is not None:
        return await _follow_all(client, watched, heard, _quiet_end)
    match _chosen(show, len(runs)):
        case "live":
            started = time.monotonic()
            with Live(get_renderable=lambda: progress(watched, started), console=out, refresh_per_second=4):
                return await _follow_all(client, watched, _quiet, _quiet_end)
        case "events":
            return await _follow_all(client, watched, print_event, _quiet_end)
        case "runs":
            return await _follow_all(client, watched, _quiet, print_end)
        case _:
            return await _follow_all(client, watched, _quiet, _quiet_end)


def _chosen(show: Show, runs: int) -> Show:
    if show != "auto":
        return show
    if out.is_terminal:
        return "live"
    return "events" if runs <= PRINT_EVENTS_UP_TO else "runs"


def _quiet(_: Watched, __: Event) -> None: ...


def _quiet_end(_: Watched) -> None: ...


async def _follow_all(client: AsyncClient, watched: Sequence[Watched], heard: Heard, ended: Ended) -> list[Run]:
    async def follow(one: Watched) -> Run:
        await _follow(client, one, heard)
        ended(one)
        return one.run

    return await together(follow, watched, STREAMS)


async def _follow(client: AsyncClient, one: Watched, heard: Heard) -> None:
    """Follow a run to its end, however often the connection or the service goes away meanwhile."""
    last_heard = time.monotonic()
    while not one.run.done:
        try:
            async for event in client.runs.events(one.run.id, after=one.events):
                last_heard = time.monotonic()
                one.take(event)
                heard(one, event)
            one.run = await client.runs.wait(one.run.id)
            one.phase = one.run.phase
        except Disconnected:
            if time.monotonic() - last_heard > PATIENCE_S:
                raise
            await asyncio.sleep(AWAY_PAUSE_S)


def print_event(watched: Watched, event: Event) -> None:
    """Print an event, one line per line of what it says."""
    stamp = event.ts.strftime("%H:%M:%S.%f")[:-3] if event.ts else ""
    for said in describe(event):
        head = f"{stamp} {name(watched.run):<58} {event.seq:>4} {one_line(event.type, 24):<18} "
        out.print(Text(head, style="dim").append(said, style="default"))


def print_end(watched: Watched) -> None:
    run = watched.run
    line(f"{run.id} {name(run)}: {run.outcome or run.phase}, {verdict(run)}, {seconds(run.wall_s)}")


def note(text: str) -> None:
    """Say something that is not a result: on standard error, so that standard output can be piped."""
    err.print(Text(one_line(text, 400), style="yellow"))


def progress(watched: Sequence[Watched], started: float | None = None) -> Table:
    """Return the live table; past 30 runs only those that move, and a count."""
    table = Table(box=None, pad_edge=False)
    for column in ("run", "phase", "events", "doing"):
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    active = [w for w in watched if w.phase not in ("queued", "held", "done")]
    for w in list(watched) if len(watched) <= LIVE_ROWS else active[:LIVE_ROWS]:
        said = verdict(w.run) if w.run.done else one_line(w.output, 80) or hold(w.run)
        table.add_row(Text(name(w.run)), Text(one_line(w.phase, 20)), Text(str(w.events)), Text(said))
    table.caption = _caption(watched, started)
    return table


def _caption(watched: Sequence[Watched], started: float | None) -> Text:
    done = sum(w.run.done for w in watched)
    parts = [f"{done} of {len(watched)} done"]
    phases = Counter(w.phase for w in watched if not w.run.done)
    parts += [f"{n} {one_line(phase, 20)}" for phase, n in phases.most_common(5)]
    if ungraded := sum(w.run.done and w.run.outcome != "graded" for w in watched):
        parts.append(f"{ungraded} without a score")
    if started is not None:
        parts.append(f"{time.monotonic() - started:.0f} s")
    return Text(" · ".join(parts))

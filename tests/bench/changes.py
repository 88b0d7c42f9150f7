"""``changes``: the feed keeps up with 500 state changes a second of one evaluation's runs."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sqlalchemy import text

from service.domain.run_states import EndedBecause, Outcome, Phase
from service.store import changes, clock, runs
from service.store.changes import Position
from service.store.database import Tx
from tests.bench.evaluation_watching import Scene, with_runs
from tests.bench.report import Result
from tests.fixtures.postgres import plain_url

STATES_PER_S, SECONDS, WRITERS = 500, 10, 8
OWN_WAY = 1000
"""Changes that our own code makes, as fast as one process can."""
_CHANGER = Path(__file__).with_name("changes_writer.py")


def changes_feed() -> Result:
    """Seconds that the reader of the feed is behind the oldest of 500 state changes a second, at the worst.

    A process of its own makes them, one statement each: our own way to change a run's phase (its lock, its row, its event and
    whom it is told) fills these cores before; how many a second that makes in one process is said beside it.
    """
    detail = with_runs(_change)
    return Result("changes", detail["behind_s"], "s", goal="500/s, behind ≤ 2 s", detail=detail)


async def _change(scene: Scene) -> dict[str, Any]:
    async with scene.db.reading() as tx:
        found = await tx.execute(text("SELECT id FROM runs WHERE evaluation_id = :id"), {"id": scene.evaluation_id})
        ids = [*found.scalars()]
    async with scene.db.reading() as tx:
        position = await _drain(tx, scene, Position())
    stop, behind = asyncio.Event(), list[float]()
    reader = asyncio.create_task(_follow(scene, position, stop, behind))
    wanted = STATES_PER_S * SECONDS
    took = await asyncio.to_thread(_changed_elsewhere, scene.db.url, ids[:wanted])
    stop.set()
    await reader
    seen = len(behind)
    return {
        "changes_per_s": wanted / took, "behind_s": max(behind), "median_behind_s": statistics.median(behind),
        "seen": seen, "missed": wanted - seen, "own_way_per_s": await _own_way(scene, ids[wanted : wanted + OWN_WAY]),
    }  # fmt: skip


def _changed_elsewhere(url: str, ids: list[str]) -> float:
    """Return the seconds that the other process took."""
    command = [sys.executable, str(_CHANGER), plain_url(url), str(WRITERS), str(STATES_PER_S)]
    done = subprocess.run(command, input="\n".join(ids), text=True, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


async def _own_way(scene: Scene, ids: list[str]) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(_write(scene, ids[w::WRITERS]) for w in range(WRITERS)))
    return len(ids) / (time.perf_counter() - began)


async def _write(scene: Scene, ids: list[str]) -> None:
    for run_id in ids:
        async with scene.db.transaction() as tx:
            await runs.set_phase(tx, run_id, Phase.DONE, outcome=Outcome.UNGRADED, ended_because=EndedBecause.COMPLETED)


async def _drain(tx: Tx, scene: Scene, position: Position) -> Position:
    while True:
        page = await changes.read(tx, scene.seeds.project.id, "", ["run", "evaluation"], position, 500)
        position = page.position
        if not page.full:
            return position


async def _follow(scene: Scene, position: Position, stop: asyncio.Event, behind: list[float]) -> None:
    while True:
        last = stop.is_set()
        async with scene.db.reading() as tx:
            page = await changes.read(tx, scene.seeds.project.id, "", ["run", "evaluation"], position, 500)
            now = await clock.now(tx)
        position = page.position
        behind += [(now - c.body["updated_at"]).total_seconds() for c in page.changes if c.kind == "run" and c.body]
        if last and not page.full and not page.pending:
            return
        await asyncio.sleep(0.05)

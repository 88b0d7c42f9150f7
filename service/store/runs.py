"""Runs. What clients see of a run has a revision, raised by every change.

Use it as ``from service.store import runs``: some names are those of builtins.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Select, func, select

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import EventType
from service.domain.ids import new_id
from service.domain.run_states import EndedBecause, Flag, Outcome, Phase, StopMode
from service.store import evidence, integrity, listing, votes
from service.store.blob_refs import drop_refs
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.notifications import RUNS
from service.store.paging import fetch_page
from service.store.phases import append_own, change_phase, notify, touch
from service.store.rows import Cursor, NewRun, Page, RunFilter, RunRow, Slice
from service.store.run_filters import SORTS, conditions
from service.store.tables import agents, run_events, runs, tasks, tokens

STOP_RANK = {None: 0, StopMode.FINISH: 1, StopMode.COLLECT: 2, StopMode.DISCARD: 3}
_OWNED_REFS = ("run", "event", "log", "artifact", "model_request", "picture", "film")
_WAITING = frozenset({Phase.QUEUED, Phase.HELD})


def _query() -> Select[Any]:
    names = (tasks.c.name.label("task_name"), tasks.c.digest.label("task_digest"), agents.c.label.label("agent_label"))
    return select(runs, *names).join(tasks, tasks.c.id == runs.c.task_id).join(agents, agents.c.id == runs.c.agent_id)


async def insert(tx: Tx, new: NewRun) -> RunRow:
    """Insert a queued run with its first event, and wake claimers. Task and agent must be the project's own."""
    run_id = new_id("run")
    values = {
        "id": run_id,
        "phase": Phase.QUEUED,
        "queued_at": func.clock_timestamp(),
        "limits": new.limits.model_dump(mode="json"),
        "labels": dict(new.labels),
        "flags": [*new.flags],
    }
    plain = (
        "project_id", "task_id", "agent_id", "sample", "max_attempts", "priority", "derived_from", "environment",
        "runtime", "plan", "driver", "model_id", "provider_tools", "replay_of", "keep_on_failure_s", "kit",
        "evaluation_id",
    )  # fmt: skip
    values |= {name: getattr(new, name) for name in plain}
    values |= {name: getattr(new, name).model_dump(mode="json") for name in ("budget", "network")}
    row = (await tx.execute(runs.insert().values(values).returning(runs))).mappings().one()
    await change_phase(tx, row, Phase.QUEUED)
    return await load(tx, run_id)


async def get(tx: Tx, project_id: str, run_id: str) -> RunRow | None:
    """Return the project's run; null if there is none (or it is another project's)."""
    query = _query().where(runs.c.id == run_id, runs.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else RunRow.of(row)


async def load(tx: Tx, run_id: str) -> RunRow:
    """Return a run of any project, for workers. Raises NotFound("run_not_found")."""
    row = (await tx.execute(_query().where(runs.c.id == run_id))).mappings().one_or_none()
    if row is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    return RunRow.of(row)


async def list(
    tx: Tx, project_id: str, where: RunFilter, sort: str = "-created_at", cursor: Cursor | None = None, limit: int = 50
) -> Slice[RunRow]:
    """Return a page. Raises Invalid("invalid_sort" | "invalid_cursor" | "invalid_limit")."""
    if sort not in SORTS:
        raise Invalid("invalid_sort", f"sort is one of {', '.join(SORTS)}")
    query = _query().where(runs.c.project_id == project_id, *conditions(where))
    rows, following = await fetch_page(tx, query, SORTS[sort], runs.c.id, Page(cursor, limit))
    return Slice([RunRow.of(r) for r in rows], following)


async def count(tx: Tx, project_id: str, where: RunFilter) -> int:
    """Count the runs that the filter lets through."""
    query = _query().where(runs.c.project_id == project_id, *conditions(where)).with_only_columns(func.count())
    return (await tx.execute(query)).scalar_one()


async def fingerprint(tx: Tx, project_id: str, where: RunFilter) -> str:
    """Return a text that differs whenever the runs that the filter lets through do, or their revisions."""
    query = select().select_from(runs).where(runs.c.project_id == project_id, *conditions(where))
    if where.facets:
        query = query.join(tasks, tasks.c.id == runs.c.task_id)
    if where.model or where.scaffold:
        query = query.join(agents, agents.c.id == runs.c.agent_id)
    return await listing.fingerprint(tx, query, runs.c.id, runs.c.revision)


async def counts_by_phase(tx: Tx, project_id: str) -> dict[Phase, int]:
    """Return the number of runs in every phase; they add up to the total."""
    query = select(runs.c.phase, func.count().label("n")).where(runs.c.project_id == project_id).group_by(runs.c.phase)
    found: dict[str, int] = {row.phase: row.n for row in await tx.execute(query)}
    return {phase: found.get(phase, 0) for phase in Phase}


async def set_phase(
    tx: Tx,
    run_id: str,
    phase: Phase,
    *,
    outcome: Outcome | None = None,
    ended_because: EndedBecause | None = None,
    hold: dict[str, Any] | None = None,
) -> bool:
    """Change the phase; False, and nothing is written, when the run is done already or has that phase.

    ``hold`` is kept with phase ``held`` only. ``outcome`` belongs to ``done``; a cause that is given replaces an older
    one. Entering ``queued`` restarts the queue's clock.
    """
    run = await lock_run(tx, run_id)
    if run["phase"] in (Phase.DONE, phase) and not (phase is Phase.HELD and run["hold"] != hold):
        return False
    if (phase is Phase.DONE) != (outcome is not None):
        raise ValueError("an outcome belongs to phase done, and only to it")
    columns: dict[str, Any] = {"outcome": outcome, "hold": hold if phase is Phase.HELD else None}
    if ended_because is not None:
        columns["ended_because"] = ended_because
    if phase is Phase.DONE:
        columns |= {"ended_at": func.coalesce(runs.c.ended_at, func.clock_timestamp()), "doing": None}
    if phase is Phase.QUEUED:
        columns["queued_at"] = func.clock_timestamp()
    await change_phase(tx, run, phase, **columns)
    return True


async def request_stop(tx: Tx, run_id: str, mode: StopMode) -> RunRow:
    """Ask for the run's end. Queued and held runs are cancelled at once; live ones get a flag that workers see.

    A later request counts only if it is harsher (finish < collect < discard); a run that is done stays as it is.
    """
    run = await lock_run(tx, run_id)
    harsher = STOP_RANK[mode] > STOP_RANK[run["stop_mode"]]
    if run["phase"] != Phase.DONE and harsher:
        columns: dict[str, Any] = {"stop_mode": mode}
        if run["stop_requested_at"] is None:
            columns["stop_requested_at"] = func.clock_timestamp()
        changed = await touch(tx, run_id, **columns)
        await append_own(tx, changed, EventType.STOP_REQUESTED, {"mode": mode})
        await notify(tx, RUNS, f"{run_id} {run['phase']}")
    if run["phase"] in _WAITING:
        await set_phase(tx, run_id, Phase.DONE, outcome=Outcome.CANCELLED, ended_because=EndedBecause.CANCELLED)
    return await load(tx, run_id)


async def update(tx: Tx, run_id: str, **columns: Any) -> None:
    """Write columns other than the phase; raises the revision and wakes those who watch the run."""
    await lock_run(tx, run_id)
    await touch(tx, run_id, **columns)
    await notify(tx, RUNS, run_id)


async def add_flags(tx: Tx, run_id: str, flags: Iterable[Flag | str]) -> None:
    """Add flags that the run does not have yet; they are never taken away."""
    run = await lock_run(tx, run_id)
    new = [f for f in dict.fromkeys(str(f) for f in flags) if f not in run["flags"]]
    if new:
        await touch(tx, run_id, flags=[*run["flags"], *new])
        await notify(tx, RUNS, run_id)


async def delete(tx: Tx, run_id: str) -> None:
    """Delete an ended run with everything that belongs to it; blobs go with the next collection.

    Raises NotFound, Conflict("run_not_ended").
    """
    run = await lock_run(tx, run_id)
    if run["phase"] != Phase.DONE:
        raise Conflict("run_not_ended", "only runs that are done can be deleted; stop it first")
    for kind in _OWNED_REFS:
        await drop_refs(tx, kind, run_id)
    await votes.drop_blobs_of_run(tx, run_id)
    await tx.execute(run_events.delete().where(run_events.c.run_id == run_id))
    await tx.execute(tokens.delete().where(tokens.c.run_id == run_id))
    await tx.execute(runs.delete().where(runs.c.id == run_id))
    if run["deliverable_digest"] is not None:
        await integrity.drop_unused(tx, run["project_id"], run["deliverable_digest"])
        await evidence.drop_unused(tx, run["project_id"], run["deliverable_digest"])

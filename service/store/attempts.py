"""Attempts: rows that move through their states. Every write checks the fence, under the run's lock."""

from typing import Any

from sqlalchemy import ColumnElement, RowMapping, func, select

from service.domain.cleaning import clean_json
from service.domain.events import EventType
from service.domain.run_states import (
    ATTEMPT_PHASE,
    TERMINAL_ATTEMPTS,
    AttemptState,
    EndedBecause,
    Flag,
    Outcome,
    Phase,
)
from service.store import tokens
from service.store.claims import claim
from service.store.database import Tx
from service.store.fences import check_fence, lock_attempt, lock_run
from service.store.phases import append_own, change_phase, touch
from service.store.rows import AttemptRow
from service.store.tables import attempts, fence_sequence, hosts, runs

__all__ = [
    "advance", "check_fence", "claim", "end_lost", "fence_lost_host", "get", "list_for_run", "live_of_host",
    "live_sandbox_ids", "takeover", "update",
]  # fmt: skip

_ORDER = {state: place for place, state in enumerate(AttemptState)}
_TIME_OF = {
    AttemptState.BOUND: "bound_at",
    AttemptState.RUNNING: "started_at",
    AttemptState.ENDED: "ended_at",
    AttemptState.COLLECTED: "collected_at",
    AttemptState.RELEASED: "released_at",
}
_MIRRORED = ("started_at", "deadline_at", "ended_at", "ended_because")
_JSON = ("argv", "env", "attestation", "evidence", "logs", "offsets")


def _live() -> ColumnElement[bool]:
    # Written out, so that the planner sees the condition of the partial index.
    return attempts.c.state.not_in(sorted(TERMINAL_ATTEMPTS))


async def get(tx: Tx, run_id: str, n: int) -> AttemptRow | None:
    query = select(attempts).where(attempts.c.run_id == run_id, attempts.c.n == n)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else AttemptRow.of(row)


async def list_for_run(tx: Tx, run_id: str) -> list[AttemptRow]:
    query = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.n)
    return [AttemptRow.of(row) for row in (await tx.execute(query)).mappings()]


async def live_of_host(tx: Tx, host_id: str) -> list[AttemptRow]:
    query = select(attempts).where(attempts.c.host_id == host_id, _live()).order_by(attempts.c.run_id)
    return [AttemptRow.of(row) for row in (await tx.execute(query)).mappings()]


async def live_sandbox_ids(tx: Tx, host_id: str) -> set[str]:
    """Return the sandboxes that a live attempt of the host is bound to: those that the reaper must leave alone."""
    query = select(attempts.c.sandbox_id).where(attempts.c.host_id == host_id, _live())
    return {sandbox for sandbox in (await tx.execute(query)).scalars() if sandbox is not None}


async def advance(
    tx: Tx, attempt: AttemptRow, new_state: AttemptState, *, deadline_in_s: float | None = None, **columns: Any
) -> AttemptRow:
    """Move the attempt to ``new_state`` and write ``columns``; return the row as it is now.

    Sets the state's time by the database's clock, and the run's phase (ATTEMPT_PHASE), times and cause with it; writes
    ``attempt.ended`` when it enters ``ended``. Going to the state that it has already only writes the columns.
    ``deadline_in_s`` sets ``deadline_at`` to that many seconds from now. Raises FenceLost; ValueError for a step back.
    """
    run, before = await lock_attempt(tx, attempt.run_id, attempt.n, attempt.fence)
    if _ORDER[new_state] < _ORDER[AttemptState(before["state"])]:
        raise ValueError(f"an attempt does not go from {before['state']} back to {new_state}")
    if new_state != before["state"] and new_state in _TIME_OF:
        columns.setdefault(_TIME_OF[new_state], func.clock_timestamp())
    if deadline_in_s is not None:
        columns["deadline_at"] = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, deadline_in_s)
    after = await _write(tx, attempt, state=new_state, **columns)
    await _follow(tx, run, before, after)
    return AttemptRow.of(after)


async def update(tx: Tx, attempt: AttemptRow, **columns: Any) -> AttemptRow:
    """Write columns of the attempt (``offsets``, ``logs`` …) without moving it. Raises FenceLost."""
    await check_fence(tx, attempt.run_id, attempt.n, attempt.fence)
    return AttemptRow.of(await _write(tx, attempt, **columns))


async def takeover(tx: Tx, host_id: str, epoch: str) -> list[AttemptRow]:
    """Make ``epoch`` the host's process and give its live attempts new fences: the old process can write no more."""
    await tx.execute(
        hosts.update().where(hosts.c.id == host_id).values(epoch=epoch, state="up", beat_at=func.clock_timestamp())
    )
    await _lock_runs_of_host(tx, host_id)
    query = attempts.update().where(attempts.c.host_id == host_id, _live())
    rows = await tx.execute(query.values(fence=fence_sequence.next_value()).returning(attempts))
    return sorted((AttemptRow.of(row) for row in rows.mappings()), key=lambda a: a.run_id)


async def fence_lost_host(tx: Tx, host_id: str) -> list[AttemptRow]:
    """Declare the host lost: its live attempts end as ``sandbox_lost``, their runs are queued again or end.

    Returns those attempts as they were before. One in state ``collected`` has its deliverable already: its run is left
    as it is, and the caller goes on with grading.
    """
    await tx.execute(hosts.update().where(hosts.c.id == host_id).values(state="lost"))
    await _lock_runs_of_host(tx, host_id)
    lost = await live_of_host(tx, host_id)
    for attempt in lost:
        await end_lost(tx, attempt, EndedBecause.SANDBOX_LOST, {"host_lost": host_id})
    return lost


async def end_lost(
    tx: Tx, attempt: AttemptRow, cause: EndedBecause, evidence: dict[str, Any], *, retry: bool = True
) -> None:
    """End an attempt that infrastructure failed. Nobody holds it afterwards: its fence moves on.

    Its run, if this is the latest attempt, is queued again (flag ``retried``) while attempts are left and ``retry`` says
    that a further one makes sense; ends as ``cancelled`` if a stop was requested, else as ``ungraded``. Raises FenceLost.
    """
    run, before = await lock_attempt(tx, attempt.run_id, attempt.n, attempt.fence)
    ended = func.coalesce(attempts.c.ended_at, func.clock_timestamp())
    values: dict[str, Any] = {"state": AttemptState.LOST, "fence": fence_sequence.next_value(), "ended_at": ended}
    sealed = before["state"] in (AttemptState.COLLECTED, AttemptState.RELEASED)
    if not sealed:
        values |= {"ended_because": cause, "evidence": evidence}
    after = await _write(tx, attempt, **values)
    await tokens.revoke_run(tx, attempt.run_id, attempt.n)
    if sealed or run["attempt"] != attempt.n or run["phase"] == Phase.DONE:
        return
    await _say_ended(tx, run, after)
    await _queue_or_end(tx, run, cause, retry=retry)


async def _queue_or_end(tx: Tx, run: RowMapping, cause: EndedBecause, *, retry: bool) -> None:
    if run["stop_mode"] is not None:
        ending = {"outcome": Outcome.CANCELLED, "ended_because": EndedBecause.CANCELLED}
    elif retry and run["attempt"] < run["max_attempts"]:
        flags = list(dict.fromkeys([*run["flags"], Flag.RETRIED.value]))
        again = {"queued_at": func.clock_timestamp(), "flags": flags, "ended_because": None, "doing": None}
        await change_phase(tx, run, Phase.QUEUED, ended_at=None, **again)
        return
    else:
        ending = {"outcome": Outcome.UNGRADED, "ended_because": cause}
    ended_at = func.coalesce(runs.c.ended_at, func.clock_timestamp())
    await change_phase(tx, run, Phase.DONE, ended_at=ended_at, doing=None, **ending)


async def _write(tx: Tx, attempt: AttemptRow, **columns: Any) -> RowMapping:
    for name in _JSON:
        if columns.get(name) is not None:
            columns[name] = clean_json(columns[name])
    query = attempts.update().where(attempts.c.run_id == attempt.run_id, attempts.c.n == attempt.n)
    return (await tx.execute(query.values(columns).returning(attempts))).mappings().one()


async def _follow(tx: Tx, run: RowMapping, before: RowMapping, after: RowMapping) -> None:
    """Let the run follow its latest attempt."""
    if run["attempt"] != after["n"] or run["phase"] == Phase.DONE:
        return
    changed = {name: after[name] for name in _MIRRORED if after[name] != before[name]}
    if after["state"] == AttemptState.ENDED and before["state"] != after["state"]:
        await _say_ended(tx, run, after)
    phase = ATTEMPT_PHASE.get(AttemptState(after["state"]))
    if phase is not None and phase != run["phase"] and before["state"] != after["state"]:
        await change_phase(tx, run, phase, **changed)
    elif changed:
        await touch(tx, run["id"], **changed)


async def _say_ended(tx: Tx, run: RowMapping, after: RowMapping) -> None:
    touched = await touch(tx, run["id"])
    payload = {"attempt": after["n"], "ended_because": after["ended_because"], "evidence": after["evidence"]}
    await append_own(tx, touched, EventType.ATTEMPT_ENDED, payload)


async def _lock_runs_of_host(tx: Tx, host_id: str) -> None:
    ids = select(attempts.c.run_id).where(attempts.c.host_id == host_id, _live()).distinct()
    for run_id in sorted((await tx.execute(ids)).scalars()):
        await lock_run(tx, run_id)

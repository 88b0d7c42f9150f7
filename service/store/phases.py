"""The one place that changes a run's phase: row, event and notification together."""

from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, func, select, update

from service.domain.events import EventType, NewEvent
from service.domain.run_states import Phase
from service.store import events
from service.store.announcements import announce_phase
from service.store.database import Tx
from service.store.notifications import QUEUE, RUNS
from service.store.tables import runs

SOURCE = "run"
"""Source of the events that the store itself writes; their offset is the run's revision."""
_BREAKS = frozenset({Phase.PAUSED, Phase.AWAITING_CONFIRMATION})
"""From these a run goes on: nobody is told again that it is running."""


async def change_phase(tx: Tx, run: RowMapping, phase: Phase, **columns: Any) -> RowMapping:
    """Set the phase (and ``columns``) of a run whose row the caller has locked; say so in its log and to listeners.

    Returns the row as it is now.
    """
    changed = await touch(tx, run["id"], phase=phase, **columns)
    payload = {name: changed[name] for name in ("phase", "outcome", "ended_because")}
    if changed["hold"] is not None:
        payload["hold"] = changed["hold"]
    await append_own(tx, changed, EventType.RUN_PHASE, payload)
    if phase is not Phase.RUNNING or run["phase"] not in _BREAKS:
        await announce_phase(tx, run["id"], run["phase"], phase)
    await notify(tx, RUNS, f"{run['id']} {phase}")
    if phase is Phase.QUEUED:
        await notify(tx, QUEUE, run["id"])
    return changed


async def touch(tx: Tx, run_id: str, **columns: Any) -> RowMapping:
    """Write ``columns``, raise the revision, return the row. The caller has locked it."""
    query = update(runs).where(runs.c.id == run_id).values(
        **columns, revision=runs.c.revision + 1, updated_at=func.clock_timestamp()
    ).returning(runs)  # fmt: skip
    return (await tx.execute(query)).mappings().one()


async def append_own(tx: Tx, run: RowMapping, type_: EventType, payload: dict[str, Any]) -> None:
    """Append an event of the store's own, numbered by the revision that ``run`` (just written) has."""
    await events.append(tx, run["id"], run["attempt"], None, [own_event(run, type_, payload)])


def own_event(run: RowMapping, type_: EventType, payload: dict[str, Any]) -> NewEvent:
    ts: datetime = run["updated_at"]
    return NewEvent(type_, payload, f"{SOURCE}:{type_}", run["revision"], ts)


async def notify(tx: Tx, channel: str, payload: str) -> None:
    """Send at commit; the payload's first word is the key of subscriptions."""
    await tx.execute(select(func.pg_notify(channel, payload)))

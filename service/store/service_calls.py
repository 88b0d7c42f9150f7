"""The ledger of what runs ask of gateway services: a row per call, made and priced before it leaves, settled when it ended.

Use it as ``from service.store import service_calls``. The run's counters and its event are written with the settlement;
``service_calls`` and ``service_cost_usd`` are the latest attempt's, ``cost_usd_all_attempts`` goes on over all of them.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, func, select

from service.domain.cleaning import clean_json, clean_str
from service.domain.errors import Gone, NotFound
from service.domain.events import EventType, NewEvent
from service.domain.run_states import AttemptState
from service.store import events
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.phases import touch
from service.store.request_bodies import OWNER as BODIES_OWNER
from service.store.rows_requests import CallEnd, NewCall, ServiceCallRow
from service.store.tables import attempts, runs
from service.store.tables_models import service_calls as calls

SOURCE = "gateway.services"
"""Source of the events of calls; two offsets belong to each call of a run."""
_PATH = 500
"""Characters of a path that are kept."""
_ASKING = (AttemptState.CLAIMED, AttemptState.BOUND, AttemptState.RUNNING)


async def begin(tx: Tx, new: NewCall) -> None:
    """Write the row of a call that is about to leave. May be repeated. Raises Gone("attempt_over"), NotFound."""
    run = await lock_run(tx, new.run_id)
    if (await tx.execute(select(calls.c.id).where(calls.c.id == new.id))).first() is not None:
        return
    state = select(attempts.c.state).where(attempts.c.run_id == new.run_id, attempts.c.n == new.attempt)
    if (await tx.execute(state)).scalar_one_or_none() not in _ASKING or run["outcome"] is not None:
        raise Gone("attempt_over", "the attempt has ended")
    last = select(func.coalesce(func.max(calls.c.n), 0)).where(calls.c.run_id == new.run_id)
    values = {name: getattr(new, name) for name in NewCall.__slots__}
    values |= {"path": clean_str(new.path[:_PATH])[0], "n": (await tx.execute(last)).scalar_one() + 1}
    await tx.execute(calls.insert().values(values))


async def settle(tx: Tx, call_id: str, end: CallEnd, ts: datetime) -> bool:
    """Write how the call ended, once; False when that is written already or its run was deleted."""
    run_id = (await tx.execute(select(calls.c.run_id).where(calls.c.id == call_id))).scalar_one_or_none()
    if run_id is None:
        return False
    try:
        run = await lock_run(tx, run_id)
    except NotFound:
        return False
    ended: dict[str, Any] = {"status": end.status, "error": end.error, "bytes": end.size, "seconds": end.seconds}
    ended |= {"request_blob": end.request_blob, "response_blob": end.response_blob}
    ended["cassette"] = None if end.cassette is None else clean_json(end.cassette)
    query = calls.update().where(calls.c.id == call_id, calls.c.state == "started")
    query = query.values(**ended, state="finished", finished_at=func.clock_timestamp())
    row = (await tx.execute(query.returning(calls))).mappings().one_or_none()
    if row is None:
        return False
    if end.blobs:
        await add_refs(tx, row["project_id"], BODIES_OWNER, run_id, end.blobs.items())
    await _count(tx, run, row)
    if run["outcome"] is not None:  # an ended log gets no more events
        await touch(tx, run_id)
        return True
    happened = [NewEvent(EventType.SERVICE_CALL, _payload(row), SOURCE, 2 * row["n"], ts)]
    if end.note is not None:
        note = {"call_id": row["id"], **clean_json(end.note)}
        happened.append(NewEvent(EventType.NOTE, note, SOURCE, 2 * row["n"] + 1, ts))
    await events.append(tx, run_id, row["attempt"], None, happened)
    return True


async def spent(tx: Tx, run_id: str, service: str | None = None) -> tuple[int, Decimal]:
    """Return how often a run has called a service (any, if none is named), over all attempts, and for how many dollars."""
    mine = [calls.c.run_id == run_id] + ([] if service is None else [calls.c.service == service])
    count, dollars = (await tx.execute(select(func.count(), func.sum(calls.c.cost_usd)).where(*mine))).one()
    return count, dollars or Decimal(0)


async def open_of_gateway(tx: Tx, gateway_id: str, limit: int = 500) -> list[str]:
    """Return ids of calls of this gateway that are not settled."""
    mine = (calls.c.gateway_id == gateway_id, calls.c.state == "started")
    return list((await tx.execute(select(calls.c.id).where(*mine).limit(limit))).scalars())


async def list_for_run(tx: Tx, run_id: str, after: int, limit: int) -> list[ServiceCallRow]:
    """Return calls of a run with numbers above ``after``, in order. The caller checked the project."""
    query = select(calls).where(calls.c.run_id == run_id, calls.c.n > after).order_by(calls.c.n).limit(limit)
    return [ServiceCallRow.of(row) for row in (await tx.execute(query)).mappings()]


async def is_recorded(tx: Tx, run_id: str) -> bool:
    """Tell whether any call of the run can be answered from the ledger."""
    kept = (calls.c.run_id == run_id, calls.c.request_blob.is_not(None))
    return (await tx.execute(select(calls.c.id).where(*kept).limit(1))).first() is not None


async def _count(tx: Tx, run: RowMapping, row: RowMapping) -> None:
    values: dict[str, Any] = {}
    latest, cost = run["attempt"] == row["attempt"], row["cost_usd"]
    if latest:
        values["service_calls"] = runs.c.service_calls + 1
    if cost is not None:
        names = ("service_cost_usd", "cost_usd_all_attempts") if latest else ("cost_usd_all_attempts",)
        values |= {name: func.coalesce(runs.c[name], 0) + cost for name in names}
    if values:
        await tx.execute(runs.update().where(runs.c.id == run["id"]).values(values))


def _payload(row: RowMapping) -> dict[str, Any]:
    """Return the event's payload; numbers as text where they are money or counted by a price."""
    date = row["price_date"]
    return {
        "call_id": row["id"],
        **{name: row[name] for name in ("n", "service", "method", "path", "status", "error", "bytes", "seconds")},
        "replay_of_n": row["replay_of_n"],
        "units": None if row["units"] is None else float(row["units"]),
        "cost_usd": None if row["cost_usd"] is None else format(row["cost_usd"].normalize(), "f"),
        "price_date": None if date is None else date.isoformat(),
    }

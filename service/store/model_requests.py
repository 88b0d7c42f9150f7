"""The ledger: a row per request to a model, made before it is forwarded and settled when it ended (CONTRACTS 6).

The run's counters and its events are written in the same transactions. Counters are those of the latest attempt that
asked anything; ``cost_usd_all_attempts`` goes on over all of them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    RowMapping,
    Select,
    Text,
    bindparam,
    case,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.types import TypeEngine

from service.domain.cleaning import clean_json, clean_str
from service.domain.errors import Gone, NotFound
from service.domain.events import EventType, NewEvent
from service.domain.models import CostBasis, TokenUsage
from service.domain.run_states import AttemptState, Flag
from service.store import events
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.phases import touch
from service.store.request_bodies import OWNER as BODIES_OWNER
from service.store.rows_requests import ModelRequestRow, NewRequest, Settlement, Spent, SubjectCost
from service.store.tables import attempts, blob_refs, runs
from service.store.tables_models import model_requests as ledger

SOURCE = "gateway"
"""Source of the gateway's events; four offsets belong to each request of a run."""
_STARTED, _FINISHED, _TOOLS, _NOTE = 0, 1, 2, 3
_AGENT = "agent"
_MODEL_NAME = 200
"""Characters that are kept of what a client calls its model."""
_OF_THE_LOG = (_AGENT, "client")
_ASKING = (AttemptState.CLAIMED, AttemptState.BOUND, AttemptState.RUNNING)
_TOKENS = tuple(TokenUsage.model_fields)
_Told = tuple[RowMapping, NewEvent]
_IN_EVENTS = (
    "purpose", "model_id", "provider", "dialect", "route", "requested_model", "reported_model", "streaming", "status",
    "error", "provider_error", "tries", "finish_reason", "usage_known", *_TOKENS, "cost_basis", "first_token_s", "total_s", "wait_s",
)  # fmt: skip


async def begin(tx: Tx, new: NewRequest) -> None:
    """Write the row of a request that is about to be forwarded, in one statement: nothing else happens before it leaves.

    May be repeated. Raises Gone("attempt_over") when the attempt has ended, NotFound("run_not_found").
    """
    values = {name: getattr(new, name) for name in NewRequest.__slots__}
    values["requested_model"] = new.requested_model and clean_str(new.requested_model[:_MODEL_NAME])[0]
    heeding = new.run_id is not None and new.purpose in _OF_THE_LOG
    if (await tx.execute(_BEGIN_IN_RUN if heeding else _BEGIN, values)).first() is None:
        await _why_not(tx, new)


async def announce(tx: Tx, request_id: str, ts: datetime) -> None:
    """Give the request, begun at ``ts``, its number in the run; tell the run's counters and log of it. What the run has
    not been told of earlier ones comes first. May be repeated; what was never announced is when it is settled."""
    run_id = (await tx.execute(select(ledger.c.run_id).where(ledger.c.id == request_id))).scalar_one_or_none()
    if run_id is None:
        return
    try:
        run = await _lock(tx, run_id)
    except NotFound:
        return
    await _say(tx, run, await _announce(tx, run, request_id, ts))


async def settle(tx: Tx, request_id: str, end: Settlement, ts: datetime, begun_at: datetime | None = None) -> bool:
    """Write how the request ended, once; False when that is written already or its run was deleted."""
    begun = (await tx.execute(select(ledger.c.run_id, ledger.c.n).where(ledger.c.id == request_id))).one_or_none()
    run_id = None if begun is None else begun.run_id
    try:
        run = None if run_id is None else await _lock(tx, run_id)
    except NotFound:
        return False
    told: list[_Told] = []
    if run is not None and begun is not None and begun.n is None:
        told = await _announce(tx, run, request_id, begun_at)
        run = await _lock(tx, run["id"])  # its counters may begin anew
    query = ledger.update().where(ledger.c.id == request_id, ledger.c.state == "started")
    row = (await tx.execute(query.values(_columns(end)).returning(ledger))).mappings().one_or_none()
    if row is not None and end.blobs:
        await add_refs(tx, row["project_id"], BODIES_OWNER, run_id or request_id, end.blobs.items())
    if row is None or run is None:
        return row is not None
    if row["purpose"] == _AGENT:
        await _count_ended(tx, run, row, end, latest=await _counted(tx, run["id"]) == row["attempt"])
    await _say(tx, run, told + [(row, event) for event in _ended(row, end, ts)])
    return True


async def settle_of_no_run(tx: Tx, request_id: str, end: Settlement) -> None:
    """As :func:`settle` of a request that belongs to no run, in one statement: nobody has to be told. May be repeated."""
    query = ledger.update().where(ledger.c.id == request_id, ledger.c.state == "started").values(_columns(end))
    if not end.blobs:
        await tx.execute(query)
        return
    settled = query.returning(ledger.c.id, ledger.c.project_id).cte("settled")
    owner = (literal(BODIES_OWNER), settled.c.id, settled.c.project_id)
    refs = select(_unnested([*end.blobs], Text()), _unnested([*end.blobs.values()], BigInteger()), *owner)
    names = ["digest", "size_bytes", "owner_kind", "owner_id", "project_id"]
    await tx.execute(insert(blob_refs).from_select(names, refs, include_defaults=False).on_conflict_do_nothing())


def _unnested(values: list[Any], type_: TypeEngine[Any]) -> ColumnElement[Any]:
    return func.unnest(literal(values, ARRAY(type_)))


def _ended(row: RowMapping, end: Settlement, ts: datetime) -> list[NewEvent]:
    happened = [_event(row, _FINISHED, EventType.MODEL_REQUEST, _payload(row), ts)]
    if end.denied_tools or end.server_tools:
        tools = {"request_id": row["id"], "denied": list(end.denied_tools)[:32], "used": row["server_tools"]}
        happened.append(_event(row, _TOOLS, EventType.PROVIDER_TOOLS, tools, ts))
    if end.note is not None:
        happened.append(_event(row, _NOTE, EventType.NOTE, {"request_id": row["id"], **clean_json(dict(end.note))}, ts))
    return happened


async def open_of_gateway(tx: Tx, gateway_id: str, limit: int = 500) -> list[str]:
    """Return ids of requests of this gateway that are not settled."""
    mine = (ledger.c.gateway_id == gateway_id, ledger.c.state == "started")
    return list((await tx.execute(select(ledger.c.id).where(*mine).limit(limit))).scalars())


async def spent(tx: Tx, run_id: str) -> Spent:
    """Return what the agent's requests of all attempts took."""
    c = ledger.c
    total = c.input_tokens + c.cached_input_tokens + c.cache_write_tokens + c.output_tokens
    tokens = case((c.usage_known, total), else_=c.reserved_tokens)
    usd = func.coalesce(c.cost_usd, case((c.usage_known, 0), else_=c.reserved_usd))
    query = select(func.count(), func.sum(tokens), func.sum(usd)).where(c.run_id == run_id, c.purpose == _AGENT)
    count, used, dollars = (await tx.execute(query)).one()
    return Spent(count, int(used or 0), dollars or Decimal(0))


async def cost_of(tx: Tx, project_id: str, subjects: Sequence[str]) -> dict[str, SubjectCost]:
    """Return what requests for each of these (gradings, say) took; one that nothing was asked for is left out."""
    c = ledger.c
    unknown = func.count().filter(c.cost_usd.is_(None)).label("unknown")
    sums = [func.sum(c[name]).label(name) for name in ("cost_usd", *_TOKENS)]
    query = select(c.subject, func.count().label("requests"), unknown, *sums)
    mine = (c.project_id == project_id, c.subject.in_(list(subjects)))
    found: dict[str, SubjectCost] = {}
    for row in (await tx.execute(query.where(*mine).group_by(c.subject))).mappings():
        usage = TokenUsage(**{name: int(row[name]) for name in _TOKENS})
        found[row["subject"]] = SubjectCost(row["requests"], row["cost_usd"], row["unknown"], usage)
    return found


async def list_for_run(tx: Tx, run_id: str, after: int, limit: int) -> list[ModelRequestRow]:
    """Return requests of a run with numbers above ``after``, in order. The caller checked the project."""
    query: Select[Any] = select(ledger).where(ledger.c.run_id == run_id, ledger.c.n > after)
    rows = await tx.execute(query.order_by(ledger.c.n).limit(limit))
    return [ModelRequestRow.of(row) for row in rows.mappings()]


async def get(tx: Tx, run_id: str, n: int) -> ModelRequestRow | None:
    query: Select[Any] = select(ledger).where(ledger.c.run_id == run_id, ledger.c.n == n)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ModelRequestRow.of(row)


async def is_recorded(tx: Tx, run_id: str) -> bool:
    """Tell whether anything of what the run's agent or simulated client asked can be answered from the ledger."""
    c = ledger.c
    kept = (c.run_id == run_id, c.purpose.in_(_OF_THE_LOG), c.request_blob.is_not(None))
    return (await tx.execute(select(c.id).where(*kept).limit(1))).first() is not None


async def _why_not(tx: Tx, new: NewRequest) -> None:
    """Raises Gone, NotFound; returns for a request that is written (by a statement whose answer was lost)."""
    known = select(ledger.c.id).where(ledger.c.id == new.id).exists()
    run = select(runs.c.id).where(runs.c.id == new.run_id).exists()
    found = (await tx.execute(select(known.label("known"), run.label("run")))).one()
    if not found.known and not found.run:
        raise NotFound("run_not_found", f"no run {new.run_id}")
    if not found.known:
        raise Gone("attempt_over", "the attempt has ended")


async def _lock(tx: Tx, run_id: str) -> RowMapping:
    """As ``fences.lock_run``, of the few columns that are needed for every request."""
    row = (await tx.execute(_LOCK, {"locked": run_id})).mappings().one_or_none()
    if row is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    return row


async def _announce(tx: Tx, run: RowMapping, request_id: str, begun_at: datetime | None) -> list[_Told]:
    """Number what has none, up to the request; return what is to be said. The caller has locked the run."""
    found = (await tx.execute(_UNNUMBERED, {"run": run["id"], "request": request_id})).all()
    told: list[_Told] = []
    latest = found[0].latest if found else None
    for place, each in enumerate(found, 1):
        query = ledger.update().where(ledger.c.id == each.id).values(n=each.last + place).returning(ledger)
        row = (await tx.execute(query)).mappings().one()
        if row["purpose"] == _AGENT:
            await _count_begun(tx, run, fresh=latest is None or latest < (row["attempt"] or 0))
            latest = row["attempt"]
        ts = begun_at if begun_at is not None and each.id == request_id else row["created_at"]
        told.append((row, _event(row, _STARTED, EventType.MODEL_REQUEST, _payload(row), ts)))
    return told


def _latest(run_id: str) -> Select[Any]:
    """Select the attempt whose requests the run's counters count."""
    mine = (ledger.c.run_id == run_id, ledger.c.purpose == _AGENT, ledger.c.n.is_not(None))
    return select(ledger.c.attempt).where(*mine).order_by(ledger.c.n.desc()).limit(1)


async def _counted(tx: Tx, run_id: str) -> int | None:
    return (await tx.execute(_latest(run_id))).scalar_one_or_none()


async def _count_begun(tx: Tx, run: RowMapping, *, fresh: bool) -> None:
    values: dict[str, Any] = {"requests": runs.c.requests + 1}
    if fresh:
        values = dict.fromkeys(_TOKENS, 0) | {"requests": 1, "cost_usd": None, "cost_basis": None, "price_date": None}
        values["provider_wait_s"] = 0.0
    await tx.execute(runs.update().where(runs.c.id == run["id"]).values(values))


async def _count_ended(tx: Tx, run: RowMapping, row: RowMapping, end: Settlement, *, latest: bool) -> None:
    values: dict[str, Any] = {}
    if latest:
        values |= {name: runs.c[name] + row[name] for name in _TOKENS}
        values["provider_wait_s"] = runs.c.provider_wait_s + end.wait_s
    if end.cost.usd is not None:
        names = ("cost_usd", "cost_usd_all_attempts") if latest else ("cost_usd_all_attempts",)
        values |= {name: func.coalesce(runs.c[name], 0) + end.cost.usd for name in names}
        values |= {"cost_basis": end.cost.basis, "price_date": end.cost.price_date} if latest else {}
    elif latest and run["cost_basis"] is None:
        values["cost_basis"] = CostBasis.UNKNOWN
    new = [Flag.USAGE_UNKNOWN] * (end.usage is None) + [Flag.PROVIDER_TOOLS_USED] * bool(end.server_tools)
    if set(new) - set(run["flags"]):
        values["flags"] = list(dict.fromkeys([*run["flags"], *(flag.value for flag in new)]))
    if values:
        await tx.execute(runs.update().where(runs.c.id == run["id"]).values(values))


def _columns(end: Settlement) -> dict[str, Any]:
    usage = end.usage or TokenUsage()
    same = ("status", "error", "provider_error", "tries", "reported_model", "provider_request_id", "first_token_s",
            "total_s", "wait_s", "request_blob", "response_blob", "cassette")  # fmt: skip
    values = {name: getattr(end, name) for name in same} | {name: getattr(usage, name) for name in _TOKENS}
    told = {
        "reported_model": end.reported_model,
        "finish_reason": end.finish_reason,
        "provider_request_id": end.provider_request_id,
    }
    values |= clean_json(told) | {"server_tools": clean_json(dict(end.server_tools))}
    cost = {"cost_usd": end.cost.usd, "cost_basis": end.cost.basis, "price_date": end.cost.price_date}
    times = {"finished_at": func.clock_timestamp(), "state": "finished", "usage_known": end.usage is not None}
    return values | cost | times


def _payload(row: RowMapping) -> dict[str, Any]:
    dollars = None if row["cost_usd"] is None else format(row["cost_usd"].normalize(), "f")
    told: Mapping[str, Any] = {name: row[name] for name in _IN_EVENTS}
    return {"request_id": row["id"], "state": row["state"], "n": row["n"], **told, "cost_usd": dollars}


def _event(row: RowMapping, place: int, type_: EventType, payload: dict[str, Any], ts: datetime) -> NewEvent:
    return NewEvent(type_, payload, SOURCE, 4 * row["n"] + place, ts)


async def _say(tx: Tx, run: RowMapping, told: list[_Told]) -> None:
    """An ended log gets no more events."""
    if run["outcome"] is not None:
        await touch(tx, run["id"])
        return
    of_the_log = ((row, event) for row, event in told if row["purpose"] in _OF_THE_LOG)
    for attempt, group in groupby(of_the_log, key=lambda each: each[0]["attempt"]):
        await events.append(tx, run["id"], attempt, None, [event for _, event in group])


def _beginning(*conditions: ColumnElement[bool]) -> Executable:
    """Made once: to build the statement takes longer than to run it."""
    columns = [ledger.c[name] for name in NewRequest.__slots__]
    row = select(*(bindparam(column.name, type_=column.type) for column in columns)).where(*conditions)
    query = insert(ledger).from_select([column.name for column in columns], row, include_defaults=False)
    return query.on_conflict_do_nothing().returning(ledger.c.id)


def _asking() -> ColumnElement[bool]:
    """Requests whose events go into a run's log are made while its attempt works."""
    mine = select(runs.c.id).join(attempts, attempts.c.run_id == runs.c.id)
    mine = mine.where(runs.c.id == bindparam("run_id"), runs.c.outcome.is_(None))
    return mine.where(attempts.c.n == bindparam("attempt"), attempts.c.state.in_(_ASKING)).exists()


def _unnumbered() -> Executable:
    mine = ledger.c.run_id == bindparam("run")
    last = select(func.coalesce(func.max(ledger.c.n), 0)).where(mine).scalar_subquery()
    latest = select(ledger.c.attempt).where(mine, ledger.c.purpose == _AGENT, ledger.c.n.is_not(None))
    latest = latest.order_by(ledger.c.n.desc()).limit(1).scalar_subquery()
    until = select(ledger.c.created_at).where(ledger.c.id == bindparam("request")).scalar_subquery()
    found = select(ledger.c.id, last.label("last"), latest.label("latest")).where(mine, ledger.c.n.is_(None))
    return found.where(ledger.c.created_at <= until).order_by(ledger.c.created_at, ledger.c.id)


_BEGIN, _BEGIN_IN_RUN = _beginning(), _beginning(_asking())
_UNNUMBERED = _unnumbered()
_LOCK: Executable = (
    select(runs.c.id, runs.c.outcome, runs.c.flags, runs.c.cost_basis)
    .where(runs.c.id == bindparam("locked"))
    .with_for_update(key_share=True)
)

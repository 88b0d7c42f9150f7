"""Operations: what is done in the background, as clients see it. The engine's own tables are never asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import RowMapping, and_, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.domain.ids import new_id
from service.domain.operations import ENDED_OPERATIONS, MAX_LOG_CHARS, MAX_LOG_LINES, OperationState
from service.domain.webhooks import HookEvent
from service.store.announcements import announce
from service.store.blob_refs import EXPORT, drop_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.notifications import OPERATIONS
from service.store.paging import Sort
from service.store.phases import notify
from service.store.rows import OperationRow
from service.store.tables import blob_refs, tokens
from service.store.tables_benchmarks import operations

OWNER = "operation"
"""Kind of the owner of blobs that an operation needs until it has ended."""
KEPT = timedelta(days=30)
_OPEN = (OperationState.QUEUED, OperationState.RUNNING)
LISTING = Listing(
    operations,
    OperationRow.of,
    sorts_by(created_at=Sort(operations.c.created_at)),
    {"kind": one_of(operations.c.kind), "state": one_of(operations.c.state)},
    version=operations.c.revision,
)


@dataclass(frozen=True, slots=True)
class Watched:
    """What a stream looks at."""

    row: OperationRow
    token_good: bool


async def create(tx: Tx, project_id: str, kind: str, spec: dict[str, Any], unit: str = "items") -> OperationRow:
    """Queue an operation and wake who works on them. ``unit`` is what ``done`` and ``total`` count."""
    values = {
        "id": new_id("op"),
        "project_id": project_id,
        "kind": kind,
        "state": OperationState.QUEUED,
        "spec": spec,
        "unit": unit,
    }
    row = (await tx.execute(insert(operations).values(values).returning(operations))).mappings().one()
    await _tell(tx, row)
    return OperationRow.of(row)


async def get(tx: Tx, project_id: str, operation_id: str) -> OperationRow | None:
    """Return the project's operation; null if there is none (or it is another project's)."""
    query = select(operations).where(operations.c.id == operation_id, operations.c.project_id == project_id)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else OperationRow.of(row)


async def watch(tx: Tx, project_id: str, operation_id: str, token_id: str) -> Watched | None:
    """Return the project's operation and whether the token is still good, in one statement."""
    unexpired = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > func.clock_timestamp())
    good = exists().where(and_(tokens.c.id == token_id, tokens.c.revoked_at.is_(None), unexpired))
    query = select(operations, good.label("token_good"))
    mine = (operations.c.id == operation_id, operations.c.project_id == project_id)
    row = (await tx.execute(query.where(*mine))).mappings().one_or_none()
    return None if row is None else Watched(OperationRow.of(row), row["token_good"])


async def find_open_or_done(tx: Tx, project_id: str, kind: str, spec: dict[str, Any]) -> OperationRow | None:
    """Return the newest operation whose spec has these values, and that is under way or succeeded.

    Two transactions that ask for the same one after the other: the second waits, and finds what the first made.
    """
    key = f"workstead.operation.{project_id}.{kind}.{sorted(spec.items())}"
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))
    same = (operations.c.project_id == project_id, operations.c.kind == kind, operations.c.spec.contains(spec))
    usable = operations.c.state.in_((*_OPEN, OperationState.SUCCEEDED)) & operations.c.cancel_requested_at.is_(None)
    query = select(operations).where(*same, usable).order_by(operations.c.created_at.desc(), operations.c.id).limit(1)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else OperationRow.of(row)


async def older_open(tx: Tx, project_id: str, kind: str, operation_id: str) -> bool:
    """Tell whether the project has an operation of this kind under way that was made before this one."""
    mine = (operations.c.project_id == project_id, operations.c.kind == kind, operations.c.state.in_(_OPEN))
    query = select(operations.c.id).where(*mine, operations.c.id < operation_id).limit(1)
    return (await tx.execute(query)).scalar_one_or_none() is not None


async def open_ids(tx: Tx) -> Sequence[str]:
    """Return the operations that have not ended, oldest first, at most 1 000."""
    query = select(operations.c.id).where(operations.c.state.in_(_OPEN))
    return [*(await tx.execute(query.order_by(operations.c.created_at).limit(1000))).scalars()]


async def begin(tx: Tx, operation_id: str) -> OperationRow | None:
    """Mark a try: queued or (after a crash) running → running, tries + 1. Null when it has ended, or ends here."""
    row = await _locked(tx, operation_id)
    if row is None or row["state"] in ENDED_OPERATIONS:
        return None
    if row["cancel_requested_at"] is not None:
        await _end(tx, operation_id, OperationState.CANCELLED)
        return None
    started = func.coalesce(operations.c.started_at, func.clock_timestamp())
    changed = {"state": OperationState.RUNNING, "tries": operations.c.tries + 1, "started_at": started}
    return OperationRow.of(await _write(tx, operation_id, changed))


async def report(
    tx: Tx, operation_id: str, done: int, total: int | None, log: Sequence[dict[str, Any]] | None = None
) -> bool:
    """Write how far it is, and its whole log if that changed; return whether it is to go on.

    It is not when somebody asked for its end, or it has ended, or it is gone.
    """
    row = await _locked(tx, operation_id)
    if row is None or row["state"] in ENDED_OPERATIONS or row["cancel_requested_at"] is not None:
        return False
    changed: dict[str, Any] = {"done": done, "total": total}
    if log is not None:
        changed["log"] = clean_json([{**line, "text": line["text"][:MAX_LOG_CHARS]} for line in log[-MAX_LOG_LINES:]])
    await _write(tx, operation_id, changed)
    return True


async def finish(
    tx: Tx,
    operation_id: str,
    state: OperationState,
    *,
    result: dict[str, Any] | None = None,
    problem: dict[str, Any] | None = None,
) -> None:
    """End it, once: one that has ended keeps its end. Blobs that it needed may go."""
    row = await _locked(tx, operation_id)
    if row is not None and row["state"] not in ENDED_OPERATIONS:
        await _end(tx, operation_id, state, result=clean_json(result), problem=clean_json(problem))


async def request_cancel(tx: Tx, project_id: str, operation_id: str) -> OperationRow | None:
    """Ask for the end. One that nobody has begun ends at once; a running one when its handler looks."""
    if await get(tx, project_id, operation_id) is None:
        return None
    row = await _locked(tx, operation_id)
    if row is not None and row["state"] == OperationState.QUEUED:
        await _end(tx, operation_id, OperationState.CANCELLED, cancel_requested_at=func.clock_timestamp())
    elif row is not None and row["state"] == OperationState.RUNNING and row["cancel_requested_at"] is None:
        await _write(tx, operation_id, {"cancel_requested_at": func.clock_timestamp()})
    return await get(tx, project_id, operation_id)


async def purge(tx: Tx) -> int:
    """Delete operations that ended more than 30 days ago, with the exports that they made; return how many."""
    old = operations.c.ended_at < func.clock_timestamp() - KEPT
    made = blob_refs.c.owner_id.in_(select(operations.c.id).where(old))
    await tx.execute(blob_refs.delete().where(blob_refs.c.owner_kind == EXPORT, made))
    return (await tx.execute(operations.delete().where(old))).rowcount


async def _locked(tx: Tx, operation_id: str) -> RowMapping | None:
    query = select(operations).where(operations.c.id == operation_id).with_for_update()
    return (await tx.execute(query)).mappings().one_or_none()


async def _end(tx: Tx, operation_id: str, state: OperationState, **columns: Any) -> None:
    row = await _write(tx, operation_id, {"state": state, "ended_at": func.clock_timestamp(), **columns})
    await drop_refs(tx, OWNER, operation_id)
    compact = {name: row[name] for name in ("id", "kind", "state", "done", "total", "unit")}
    await announce(tx, row["project_id"], HookEvent.OPERATION_DONE, compact)


async def _write(tx: Tx, operation_id: str, columns: dict[str, Any]) -> RowMapping:
    query = operations.update().where(operations.c.id == operation_id)
    query = query.values(**columns, updated_at=func.clock_timestamp()).returning(operations)
    row = (await tx.execute(query)).mappings().one()
    await _tell(tx, row)
    return row


async def _tell(tx: Tx, row: RowMapping) -> None:
    await notify(tx, OPERATIONS, f"{row['id']} {row['state']}")

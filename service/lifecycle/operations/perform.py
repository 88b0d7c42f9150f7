"""An open operation comes to its end, whatever its handler does. Called by workers.operations."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from service.domain.errors import Expected, Unavailable
from service.domain.operations import OperationState
from service.lifecycle.operations.contract import Handler, Job, JobCancelled, OperationContext
from service.lifecycle.operations.registry import handler_for
from service.store import operations
from service.store.database import Tx
from service.store.rows import OperationRow

MAX_STARTS = 10
"""Starts of one operation, over all processes, after which it is taken to kill its process."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _End:
    state: OperationState
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


async def perform(ctx: OperationContext, operation_id: str) -> None:
    """Do one operation; nothing happens if it has ended. Raises Unavailable (database away for long)."""

    async def begin(tx: Tx) -> OperationRow | None:
        return await operations.begin(tx, operation_id)

    row = await ctx.in_transaction(begin)
    if row is None:
        return
    end = await _end_of(ctx, row)
    ctx.crash.reach("operation.done")

    async def finish(tx: Tx) -> None:
        await operations.finish(tx, operation_id, end.state, result=end.result, problem=end.problem)

    await ctx.in_transaction(finish)


async def _end_of(ctx: OperationContext, row: OperationRow) -> _End:
    handler = handler_for(row.kind)
    if handler is None:
        return _failed("unknown_operation_kind", 500, f"this installation does no {row.kind!r}")
    if row.tries > MAX_STARTS:
        return _failed("internal_error", 500, "the operation's process died again and again")
    pause = ctx.first_pause_s
    for left in reversed(range(ctx.tries)):
        end = await _attempt(ctx, row, handler, left)
        if end is not None:
            return end
        await asyncio.sleep(pause)
        pause *= 2
    return _failed("internal_error", 500)


async def _attempt(ctx: OperationContext, row: OperationRow, handler: Handler, left: int) -> _End | None:
    """Return the end, or None where another try is worth it."""
    try:
        return _End(OperationState.SUCCEEDED, await handler(ctx, Job(ctx, row)))
    except JobCancelled:
        return _End(OperationState.CANCELLED)
    except Unavailable as error:
        log.warning("operation_retry", operation=row.id, left=left, error=error.type)
        return None if left else _failed(error.type, error.status, error.detail, error.fields)
    except Expected as error:
        return _failed(error.type, error.status, error.detail, error.fields)
    except Exception:  # a handler's own bug must end as a failed operation, not as a stuck one
        log.exception("operation_bug", operation=row.id, kind=row.kind, left=left)
        return None if left else _failed("internal_error", 500)


def _failed(type: str, status: int, detail: str = "", fields: Mapping[str, Any] | None = None) -> _End:
    problem = {"type": type, "status": status, "detail": detail, "fields": dict(fields or {})}
    return _End(OperationState.FAILED, problem=problem)

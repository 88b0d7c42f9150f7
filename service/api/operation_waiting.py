"""Waiting for an operation: the long poll, and the stream with an explicit end."""

import asyncio
import json
from contextlib import suppress
from typing import Literal

from starlette.types import Send

from service.api.auth import Caller
from service.api.conditional import none_match, revision_tag
from service.api.operation_view import operation_view
from service.api.sse import HEARTBEAT_S, REREAD_S, SseStream, send_text
from service.api.state import ApiState
from service.api.stream_slots import check_slot, slot
from service.domain.operations import ENDED_OPERATIONS
from service.store import operations
from service.store.notifications import OPERATIONS
from service.store.operations import Watched
from service.store.rows import OperationRow

Until = Literal["ended", "change"]


async def wait_for_operation(
    state: ApiState, caller: Caller, first: OperationRow, until: Until, wait_s: float, known: str | None = None
) -> OperationRow:
    """Return the operation once it has what ``until`` names, or as it is after ``wait_s`` seconds.

    ``known``: the client's ETag; without it a change is one after ``first``. Raises Unavailable, RateLimited.
    """
    check_slot(state, caller.token.id)
    seen = first
    with slot(state, caller.token.id), suppress(TimeoutError):
        async with asyncio.timeout(wait_s), state.notifications.subscribe(OPERATIONS, first.id) as woken:
            while not _reached(until, first, seen, known):
                async with state.db.statement() as tx:
                    found = await operations.get(tx, caller.project_id, first.id)
                if found is None or _reached(until, first, found, known):
                    return found or seen
                seen = found
                await woken.wait(REREAD_S)
    return seen


def _reached(until: Until, first: OperationRow, seen: OperationRow, known: str | None) -> bool:
    if seen.state in ENDED_OPERATIONS:
        return True
    if until == "ended":
        return False
    if known is not None:
        return not none_match(known, revision_tag(seen.revision))
    return seen.revision != first.revision


class OperationStream(SseStream):
    """Each state of the operation as it comes (the newest, where several came at once), then ``event: end``."""

    def __init__(self, state: ApiState, caller: Caller, operation_id: str, after: int) -> None:
        super().__init__(state, caller.token.id)
        self._caller = caller
        self._id = operation_id
        self._sent = after

    async def follow(self, send: Send) -> None:
        silent_s = 0.0
        async with self.state.notifications.subscribe(OPERATIONS, self._id) as woken:
            while (seen := await self._look()) is not None and seen.token_good:
                if seen.row.revision > self._sent:
                    await send_text(send, self._message(seen.row))
                    silent_s = 0.0
                if seen.row.state in ENDED_OPERATIONS:
                    await send_text(send, f"event: end\ndata: {json.dumps({'state': seen.row.state})}\n\n")
                    return
                silent_s += 0.0 if await woken.wait(REREAD_S) else REREAD_S
                if silent_s >= HEARTBEAT_S:
                    await send_text(send, ": still here\n\n")
                    silent_s = 0.0

    async def _look(self) -> Watched | None:
        async with self.state.db.statement() as tx:
            return await operations.watch(tx, self._caller.project_id, self._id, self._caller.token.id)

    def _message(self, row: OperationRow) -> str:
        self._sent = row.revision
        return f"id: {row.revision}\ndata: {operation_view(row).model_dump_json()}\n\n"

"""Reading one run cheaply: 304 from one statement, and the long poll (NEEDS D9, D12)."""

import asyncio
import hashlib
import hmac
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from fastapi import Request
from starlette.responses import Response

from service.api.auth import Caller, bearer
from service.api.charging import charge_unchanged
from service.api.conditional import none_match, revision_tag
from service.api.queue_hold import current_tag
from service.api.state import ApiState
from service.api.stream_slots import check_slot, slot
from service.domain.errors import NotFound
from service.domain.run_states import Phase
from service.store.notifications import RUN_EVENTS, RUNS
from service.store.poll import StreamState, stream_state

Until = Literal["ended", "graded", "change"]
PREFIX_LENGTH = 12
"""Of a token (``wst_`` and 8 characters): what it is found by."""
REREAD_S = 2.0
MAX_AGE_DONE_S = 30
MAX_AGE_LIVE_S = 1


async def unchanged(request: Request, state: ApiState, run_id: str) -> Response | None:
    """Answer 304 if the bearer may read the run and has its revision already; None says nothing at all.

    One statement finds token and revision, so that polling costs no body query (a queued run's place is looked up
    besides). None leads to the ordinary path, which tells apart everything that this one does not.
    """
    wanted, secret = request.headers.get("if-none-match"), bearer(request)
    if wanted is None or not secret or not (secret.isascii() and secret.isprintable()):
        return None
    found = await state.polls.ask(secret[:PREFIX_LENGTH], run_id)
    if found is None or found.revision is None or found.phase is None or found.kind != "api":
        return None
    if not hmac.compare_digest(found.hash, hashlib.sha256(secret.encode()).digest()):
        return None
    if not {"runs:read", "admin"} & set(found.scopes):
        return None
    tag = await _tag_of(state, run_id, found.revision, found.phase)
    if not none_match(wanted, tag):
        return None
    request.state.token_id, request.state.project_id = found.token_id, found.project_id
    charge_unchanged(request, state, found.token_id)
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": cache_control(done=False)})


async def _tag_of(state: ApiState, run_id: str, revision: int, phase: Phase) -> str:
    if phase is not Phase.QUEUED:
        return revision_tag(revision)
    async with state.db.statement() as tx:
        return await current_tag(tx, run_id, revision, phase)


def cache_control(*, done: bool) -> str:
    """Return the polling hint: how long a client should leave a run alone."""
    return f"private, max-age={MAX_AGE_DONE_S if done else MAX_AGE_LIVE_S}"


async def wait_for(
    state: ApiState, caller: Caller, run_id: str, until: Until, wait_s: float, known: str | None
) -> None:
    """Return when the run has what ``until`` names, or after ``wait_s`` seconds. ``known``: the client's ETag.

    Raises NotFound, and Unavailable or RateLimited where too many streams and long polls are open.
    """
    check_slot(state, caller.token.id)
    with slot(state, caller.token.id), suppress(TimeoutError):
        channel = RUN_EVENTS if until == "change" else RUNS
        async with asyncio.timeout(wait_s), state.notifications.subscribe(channel, run_id) as woken:
            first = seen = await _look(state, caller, run_id)
            while not _reached(until, first, seen, known):
                await woken.wait(REREAD_S)
                seen = await _look(state, caller, run_id)


@dataclass(frozen=True, slots=True)
class _Seen:
    run: StreamState
    tag: str


async def _look(state: ApiState, caller: Caller, run_id: str) -> _Seen:
    async with state.db.statement() as tx:
        found = await stream_state(tx, caller.project_id, run_id, caller.token.id)
        if found is None:
            raise NotFound("not_found")
        return _Seen(found, await current_tag(tx, run_id, found.revision, found.phase))


def _reached(until: Until, first: _Seen, seen: _Seen, known: str | None) -> bool:
    match until:
        case "ended":
            return seen.run.ended_at is not None or seen.run.phase is Phase.DONE
        case "graded":
            return seen.run.finished
        case "change":
            if known is not None:
                return not none_match(known, seen.tag)
            return seen.tag != first.tag

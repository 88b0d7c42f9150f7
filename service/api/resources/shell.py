"""``/v1/runs/{id}/shell`` (WebSocket): a terminal in a live sandbox, for debugging (NEEDS B15).

Binary messages are what is typed and what is shown; text messages are JSON: ``{"resize": [rows, columns]}`` from the
client, at last ``{"exit": {"code", "signal"}}`` from us. The run is *assisted* from then on, and no report counts it.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from service.api.auth import Caller
from service.api.bridge import BridgeTerminal, WorkerAway
from service.api.lookups import run_or_404
from service.api.problems import expected_problem
from service.api.rendering import now
from service.api.socket_callers import enter
from service.api.sse import REREAD_S
from service.api.state import ApiState, api_state
from service.api.stream_slots import check_slot, slot
from service.domain.errors import Conflict, Expected, Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.run_states import AttemptState, Flag, Phase
from service.store import attempts, audit, hosts, runs
from service.store.database import Tx
from service.store.events import append
from service.store.fences import lock_run
from service.store.poll import stream_state
from service.store.rows import AttemptRow

router = APIRouter()
_ARGV = ["/bin/sh", "-c", "command -v bash >/dev/null && exec bash -i || exec sh -i"]
_LARGEST = 10_000
_INTERNAL_ERROR, _GOING_AWAY, _POLICY = 1011, 1001, 1008


@router.websocket("/v1/runs/{run_id}/shell")
async def open_shell(websocket: WebSocket, run_id: str) -> None:
    """Needs ``runs:debug``, by bearer token, or by a ticket for this path."""
    state = api_state(websocket)
    try:
        # Never by cookie: a page of another site could open a socket with it.
        caller = (await enter(websocket, state)).caller
        caller.require("runs:debug")
        check_slot(state, caller.token.id)
        with slot(state, caller.token.id):
            terminal = await _open(state, caller, run_id, websocket.query_params)
            try:
                await websocket.accept()
                await _serve(websocket, terminal, lambda: _allowed(state, caller, run_id))
            finally:
                terminal.close()
                await asyncio.shield(_say(state, run_id, "a shell was closed"))
    except Expected as error:
        await websocket.send_denial_response(expected_problem(error))


async def _open(state: ApiState, caller: Caller, run_id: str, query: Mapping[str, str]) -> BridgeTerminal:
    async with state.db.transaction() as tx:
        run = await run_or_404(tx, caller, run_id)
        attempt = await attempts.get(tx, run_id, run.attempt)
        frozen = attempt is not None and attempt.state is AttemptState.ENDED and run.keep_on_failure_s > 0
        if attempt is None or not (frozen or attempt.state is AttemptState.RUNNING):
            raise Conflict("run_not_running", f"the run is {run.phase}; there is a shell while it is running, or kept")
        host = await hosts.get(tx, attempt.host_id)
        await _assisted(tx, caller, attempt)
    head = {
        "run": run_id,
        "attempt": attempt.n,
        "fence": attempt.fence,
        "frozen": frozen,
        "argv": _ARGV,
        "env": {**_plain(attempt.env), "TERM": "xterm-256color", "PS1": r"\w$ "},
        "rows": _size(query, "rows", 24),
        "columns": _size(query, "columns", 80),
    }
    try:
        return await state.bridge.open_terminal(str(host.facts.get("bridge", "")) if host else "", head)
    except WorkerAway as error:
        raise Unavailable("worker_away", "the run's worker does not answer") from error


async def _assisted(tx: Tx, caller: Caller, attempt: AttemptRow) -> None:
    await runs.add_flags(tx, attempt.run_id, [Flag.ASSISTED])
    await append(tx, attempt.run_id, attempt.n, None, [_note("a shell was opened", caller.token.id)])
    await audit.record(tx, caller.project_id, caller.token.id, "run.shell", attempt.run_id, {"attempt": attempt.n})


async def _say(state: ApiState, run_id: str, text: str) -> None:
    with contextlib.suppress(Expected):  # the run may be deleted by now
        async with state.db.transaction() as tx:
            await lock_run(tx, run_id)
            run = await runs.load(tx, run_id)
            if run.phase is Phase.RUNNING:
                await append(tx, run_id, run.attempt, None, [_note(text)])


def _note(text: str, token_id: str | None = None) -> NewEvent:
    at = now()
    return NewEvent(EventType.NOTE, {"text": text, "token_id": token_id}, "shell", int(at.timestamp() * 1e6), at)


async def _allowed(state: ApiState, caller: Caller, run_id: str) -> bool:
    async with state.db.statement() as tx:
        found = await stream_state(tx, caller.project_id, run_id, caller.token.id)
    return found is not None and found.token_good


async def _until_forbidden(allowed: Callable[[], Awaitable[bool]]) -> None:
    """Return once the token has ended."""
    while True:
        await asyncio.sleep(REREAD_S)
        with contextlib.suppress(Unavailable):
            if not await allowed():
                return


async def _serve(websocket: WebSocket, terminal: BridgeTerminal, allowed: Callable[[], Awaitable[bool]]) -> None:
    """Carry bytes both ways until either side is gone, or the token."""
    typing = asyncio.create_task(_type(websocket, terminal))
    showing = asyncio.create_task(_show(websocket, terminal))
    watching = asyncio.create_task(_until_forbidden(allowed))
    try:
        await asyncio.wait({typing, showing, watching}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            await websocket.close(_POLICY, "the token has ended")
        if not showing.done():
            return
        try:
            await websocket.send_text(json.dumps({"exit": showing.result()}))
            await websocket.close()
        except WorkerAway:
            await websocket.close(_GOING_AWAY, "the sandbox or its worker is gone")
        except Expected as error:
            await websocket.close(_INTERNAL_ERROR, error.type)
        except WebSocketDisconnect:
            return
    finally:
        for task in (typing, showing, watching):
            task.cancel()
        await asyncio.gather(typing, showing, watching, return_exceptions=True)


async def _show(websocket: WebSocket, terminal: BridgeTerminal) -> dict[str, Any]:
    while (frame := await terminal.next()).body:
        await websocket.send_bytes(frame.body)
    return frame.head


async def _type(websocket: WebSocket, terminal: BridgeTerminal) -> None:
    """Return when the client leaves; what it sends that is no message of ours is ignored."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        data: bytes = message.get("bytes") or b""
        size = _resized(message.get("text"))
        if data or size is not None:
            await terminal.send(data, size)


def _resized(text: str | None) -> tuple[int, int] | None:
    try:
        said: Any = json.loads(text or "null")
        rows, columns = said["resize"]
        return min(max(1, int(rows)), _LARGEST), min(max(1, int(columns)), _LARGEST)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _size(query: Mapping[str, str], name: str, default: int) -> int:
    given = query.get(name, "")
    return min(max(1, int(given)), _LARGEST) if given.isascii() and given.isdecimal() and len(given) < 6 else default


def _plain(env: dict[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (env or {}).items() if value != "redacted"}

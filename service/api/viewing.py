"""One viewer of a run's screen: bytes of RFB both ways between a WebSocket and the run's worker, input held back.

Whoever watches asks for pictures; whoever holds the run's lease may also type and point, and each second's input is an
event. A paused run takes no input. The end is said by a code of our own in the close frame.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from enum import IntEnum

from fastapi import WebSocket, WebSocketDisconnect

from service.api.auth import Caller
from service.api.bridge import BridgeTerminal, WorkerAway
from service.api.rendering import now
from service.api.state import ApiState
from service.desktop.rfb import RfbFilter, RfbViolation
from service.domain.errors import Expected, Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.limits import MAX_EVENTS
from service.domain.run_states import AttemptState, Phase
from service.store import attempts, leases, runs
from service.store.database import Tx
from service.store.events import EventLog
from service.store.fences import lock_run
from service.store.notifications import RUNS
from service.store.poll import stream_state
from service.store.rows_leases import LeaseRow

SEND_S = 30.0
"""Seconds that a viewer may take to read what was sent, or a screen to take what was asked; then it is cut."""
BYTES_PER_S = 16 << 20
"""Most bytes of pictures that one viewer is sent in a second: four whole screens without any compression."""
NOTE_S = 1.0
LOOK_S = 4.0
"""Most seconds between two looks at token, run and lease, whatever notifications say: half a percent of a core each."""
CLOSE_S = 2.0
EVENTS_LEFT = 2_000
"""Of a run's events, those that are left to others."""


class Ended(IntEnum):
    """Codes of close frames."""

    BAD_RFB = 4000
    """The viewer sent what is no message of RFB, or too much."""
    NOT_READ = 4001
    FORBIDDEN = 4003
    """The token has ended, or the lease is another's."""
    RUN_OVER = 4004
    SCREEN_LOST = 4005
    WORKER_AWAY = 4006
    """Worth another try."""


@dataclass(slots=True)
class Viewing:
    state: ApiState
    caller: Caller
    run_id: str
    attempt: int
    id: str
    """Of this viewing: the source of its events."""
    lease: LeaseRow | None
    """Of who acts on the screen; null: who only watches."""
    filter: RfbFilter = field(init=False)
    _noted: int = 0

    def __post_init__(self) -> None:
        self.filter = RfbFilter(self.lease is not None)

    async def serve(self, websocket: WebSocket, stream: BridgeTerminal) -> None:
        """Carry bytes until either side is gone or the viewer may watch no more; say why, as far as it hears it."""
        works = [self._hear(websocket, stream), self._show(websocket, stream), self._watch(), self._note()]
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = next(task for task in tasks if task in done).result()
            if ended is not None:
                await self._close(websocket, ended)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _close(self, websocket: WebSocket, ended: Ended) -> None:
        with contextlib.suppress(
            WebSocketDisconnect, TimeoutError, RuntimeError
        ):  # it left meanwhile, or reads nothing
            async with asyncio.timeout(CLOSE_S):
                await websocket.close(ended, ended.name.lower())

    async def _hear(self, websocket: WebSocket, stream: BridgeTerminal) -> Ended | None:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            data: bytes | None = message.get("bytes")
            if data is None:
                return Ended.BAD_RFB
            try:
                passed = self.filter.feed(data)
                async with asyncio.timeout(SEND_S):
                    if passed:
                        await stream.send(passed)
            except RfbViolation:
                return Ended.BAD_RFB
            except TimeoutError:
                return Ended.SCREEN_LOST
            except WorkerAway:
                return await self._gone(Ended.WORKER_AWAY)

    async def _show(self, websocket: WebSocket, stream: BridgeTerminal) -> Ended | None:
        loop = asyncio.get_running_loop()
        second, shown = loop.time(), 0
        try:
            while data := (await stream.next()).body:
                async with asyncio.timeout(SEND_S):
                    await websocket.send_bytes(data)
                shown += len(data)
                # Neither reading nor sending need ever wait: others get their turn, and a flood its measure.
                await asyncio.sleep(max(0.0, second + 1 - loop.time()) if shown > BYTES_PER_S else 0)
                if loop.time() >= second + 1:
                    second, shown = loop.time(), 0
        except TimeoutError:
            return Ended.NOT_READ
        except WebSocketDisconnect:
            return None
        except WorkerAway:
            return await self._gone(Ended.WORKER_AWAY)
        except Expected:
            return await self._gone(Ended.SCREEN_LOST)
        return await self._gone(Ended.SCREEN_LOST)

    async def _gone(self, otherwise: Ended) -> Ended:
        with contextlib.suppress(Unavailable):
            async with self.state.db.reading() as tx:
                if not await self._running(tx):
                    return Ended.RUN_OVER
        return otherwise

    async def _running(self, tx: Tx) -> bool:
        attempt = await attempts.get(tx, self.run_id, self.attempt)
        return attempt is not None and attempt.state is AttemptState.RUNNING

    async def _watch(self) -> Ended | None:
        """Return once the viewer may not go on; input passes while the run is not paused."""
        async with self.state.notifications.subscribe(RUNS, self.run_id) as changes:
            while True:
                with contextlib.suppress(Unavailable):
                    ended = await self._look()
                    if ended is not None:
                        return ended
                await changes.wait(LOOK_S)

    async def _look(self) -> Ended | None:
        async with self.state.db.reading() as tx:
            found = await stream_state(tx, self.caller.project_id, self.run_id, self.caller.token.id)
            running = await self._running(tx)
            standing = None if self.lease is None else await leases.standing(tx, self.run_id)
        if found is None or not running:
            return Ended.RUN_OVER
        if not found.token_good or (self.lease is not None and not _same(standing, self.lease)):
            return Ended.FORBIDDEN
        self.filter.control = self.lease is not None and found.phase is Phase.RUNNING
        return None

    async def _note(self) -> Ended | None:
        while True:
            await asyncio.sleep(NOTE_S)
            with contextlib.suppress(Unavailable):
                await self.note()

    async def note(self) -> None:
        """Write the input since the last call into the run's log, and keep the lease for it. Raises Unavailable."""
        if self.lease is None or not self.filter.inputs.records:
            return
        async with self.state.db.transaction() as tx:
            run = await lock_run(tx, self.run_id)
            held = await leases.keep(tx, self.lease)
            payload = self.filter.inputs.take()  # nothing of a lost lease is worth another try
            if held and run["event_count"] <= MAX_EVENTS - EVENTS_LEFT:
                event = NewEvent(
                    EventType.DESKTOP_INPUT, {"viewer": self.id, **(payload or {})}, self.id, self._next(), now()
                )
                await EventLog(self.state.blobs).append(tx, self.run_id, self.attempt, None, [event])

    async def say(self, tx: Tx, action: str) -> None:
        """Append that the viewer came or went, while there is room for that and the run is not over."""
        run = await runs.load(tx, self.run_id)
        if run.event_count > MAX_EVENTS - EVENTS_LEFT or run.phase is Phase.DONE:
            return
        dropped = {} if action == "opened" else {"dropped": dict(self.filter.dropped)}
        payload = {
            "action": action,
            "viewer": self.id,
            "token_id": self.caller.token.id,
            "control": self.lease is not None,
        }
        event = NewEvent(EventType.VIEW, payload | dropped, self.id, self._next(), now())
        await EventLog(self.state.blobs).append(tx, self.run_id, self.attempt, None, [event])

    def _next(self) -> int:
        self._noted += 1
        return self._noted


def _same(one: LeaseRow | None, other: LeaseRow) -> bool:
    return one is not None and one.created_at == other.created_at

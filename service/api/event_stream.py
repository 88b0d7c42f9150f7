"""One run's events as Server-Sent Events (NEEDS D8): from a cursor to the explicit end, woken by notifications.

Between notifications the database is asked every 2 s only; that also ends the stream of a revoked token.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import Send

from service.api.event_view import event_json
from service.api.sse import HEARTBEAT_S, REREAD_S, SseStream, send_text
from service.api.state import ApiState
from service.domain.events import Event, EventType
from service.store import events
from service.store.notifications import RUN_EVENTS, Subscription
from service.store.poll import StreamState, stream_state

BATCH = 500
_MAY_END = frozenset({EventType.RUN_PHASE, EventType.VERDICT, EventType.ATTEMPT_ENDED})


@dataclass(frozen=True, slots=True)
class StreamRequest:
    project_id: str
    run_id: str
    token_id: str
    after: int
    types: tuple[str, ...] | None = None
    until: str = "graded"
    """ended | graded"""

    def over(self, state: StreamState) -> bool:
        return state.finished or (self.until == "ended" and state.ended_at is not None)


class EventStream(SseStream):
    """Streams until the end, the client's leaving, or a revoked token."""

    def __init__(self, state: ApiState, wanted: StreamRequest) -> None:
        super().__init__(state, wanted.token_id)
        self._wanted = wanted
        self._cursor = wanted.after

    async def follow(self, send: Send) -> None:
        async with self.state.notifications.subscribe(RUN_EVENTS, self._wanted.run_id) as woken:
            await self._follow(send, woken)

    async def _follow(self, send: Send, woken: Subscription) -> None:
        state, silent_s = await self._look(), 0.0
        while state is not None and state.token_good:
            sent = await self._send_new(send)
            if sent:  # more may be there; and the end is only told after a read that found nothing
                silent_s = 0.0
                if any(e.type in _MAY_END for e in sent):
                    state = await self._look()
                continue
            if self._wanted.over(state):
                await send_text(send, self._end(state))
                return
            silent_s += 0.0 if await woken.wait(REREAD_S) else REREAD_S
            if silent_s > 0 or self._wanted.types is not None:
                state = await self._look()
            if silent_s >= HEARTBEAT_S:
                await send_text(send, ": still here\n\n")
                silent_s = 0.0

    async def _look(self) -> StreamState | None:
        wanted = self._wanted
        async with self.state.db.statement() as tx:
            return await stream_state(tx, wanted.project_id, wanted.run_id, wanted.token_id)

    async def _send_new(self, send: Send) -> Sequence[Event]:
        async with self.state.db.statement() as tx:
            found = await events.read(tx, self._wanted.run_id, self._cursor, BATCH, self._wanted.types)
        if found:
            await send_text(send, "".join(f"id: {e.seq}\ndata: {event_json(e)}\n\n" for e in found))
            self._cursor = found[-1].seq
        return found

    def _end(self, state: StreamState) -> str:
        body = {"run_id": self._wanted.run_id, "last_seq": state.last_seq, "phase": state.phase}
        return f"event: end\ndata: {json.dumps(body | {'outcome': state.outcome})}\n\n"

"""One action of a remote driver: lease checked, said in the run's log, done in its sandbox, its result in the log.

The worker of the host may be killed meanwhile: the call is asked of its successor again by its id, under which the
sandbox does it once. The lease is prolonged for as long as the caller waits.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from service.api.auth import Caller
from service.api.bridge import OnPiece, WorkerAway
from service.api.lookups import run_or_404
from service.api.rendering import now
from service.api.state import ApiState
from service.domain.agents import Driver
from service.domain.errors import Conflict, Expected, Unavailable
from service.domain.events import EventType, NewEvent
from service.domain.limits import KIB, MAX_EVENTS
from service.domain.run_states import Phase
from service.lifecycle.bridge_frames import Frame
from service.store import driving, hosts, leases
from service.store.database import Tx
from service.store.events import EventLog
from service.store.rows import AttemptRow, HostRow, RunRow

PATIENCE_S = 90.0
"""How long a worker that is away is waited for."""
RETRY_S = 0.25
BEAT_S = 20.0
EVENT_TEXT = 64 * KIB
"""Most characters of one output in an event."""
EVENTS_LEFT = 2_000
"""Of a run's events, those that drivers leave to state changes."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Action:
    """A tool call as the log has it; ``id`` is the driver's, or ours."""

    id: str
    name: str
    arguments: dict[str, Any]


class TakenOver(Exception):
    """The worker that was asked is gone; what it was doing is not known, and its successor is not asked to do it again."""


@dataclass(frozen=True, slots=True)
class Driven:
    """A run in its driver's hands, for one request."""

    state: ApiState
    caller: Caller
    run_id: str
    secret: str

    @property
    def log(self) -> EventLog:
        return EventLog(self.state.blobs)

    async def hold(self, tx: Tx) -> tuple[RunRow, AttemptRow]:
        """Raises NotFound, Conflict ``lease_lost``, ``not_remote``, ``run_paused``, ``too_many_events``."""
        run = await remote_run(tx, self.caller, self.run_id)
        _, attempt = await leases.hold(tx, self.run_id, self.secret)
        not_paused(run)
        if run.event_count > MAX_EVENTS - EVENTS_LEFT:
            raise Conflict("too_many_events", f"the run has {run.event_count} events; finish it")
        return run, attempt

    async def append(self, tx: Tx, attempt: AttemptRow, events: list[NewEvent]) -> None:
        """Append in the transaction of a :meth:`hold`: the lease is the fence."""
        await self.log.append(tx, self.run_id, attempt.n, None, events)

    async def perform(
        self,
        action: Action,
        head: dict[str, Any],
        body: bytes = b"",
        *,
        seconds: float = 0.0,
        on_piece: OnPiece | None = None,
        environment: bool = False,
        result: Callable[[Frame], dict[str, Any]],
    ) -> Frame:
        """Do it and return the worker's answer. Raises Expected; Unavailable when the worker stays away."""
        async with self.state.db.transaction() as tx:
            _, attempt = await self.hold(tx)
            call = {"id": action.id, "name": action.name, "arguments": action.arguments}
            await self.append(tx, attempt, [call_event(EventType.TOOL_CALL, action.id, 0, call)])
            await driving.note_call(tx, self.run_id, action.name)
        if environment:
            head = {**head, "env": {**_environment(attempt), **(head.get("env") or {})}}
        async with self.beating():
            try:
                answer = await self.ask(attempt.n, {**head, "call_id": f"drv-{action.id}"}, body, seconds, on_piece)
            except Expected as error:
                await self._say(action, {"output": error.detail or error.type, "is_error": True})
                raise
        await self._say(action, result(answer))
        return answer

    async def _say(self, action: Action, payload: dict[str, Any]) -> None:
        async with self.state.db.transaction() as tx:
            _, attempt = await self.hold(tx)
            event = call_event(EventType.TOOL_RESULT, action.id, 1, {"id": action.id, **payload})
            await self.append(tx, attempt, [event])

    async def ask(
        self,
        n: int,
        head: dict[str, Any],
        body: bytes = b"",
        seconds: float = 0.0,
        on_piece: OnPiece | None = None,
        *,
        fence: int | None = None,
    ) -> Frame:
        """Ask the run's worker, again and again while it is away. Raises Expected.

        With ``fence`` only a worker that holds it is asked: TakenOver when its successor is there.
        """
        once = _Once(on_piece)
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            attempt, host = await self._where(n)
            if fence is not None and attempt.fence != fence:
                raise TakenOver
            named = {"run": self.run_id, "attempt": n, "fence": attempt.fence, **head}
            try:
                place = str(host.facts.get("bridge", ""))
                return await self.state.bridge.call(place, named, body, seconds=seconds, on_piece=once.begin())
            except WorkerAway as error:
                if loop.time() > until:
                    raise Unavailable("worker_away", "the run's worker does not answer") from error
            await asyncio.sleep(RETRY_S)

    async def _where(self, n: int) -> tuple[AttemptRow, HostRow]:
        async with self.state.db.transaction() as tx:
            _, attempt = await self.hold(tx)
            host = await hosts.get(tx, attempt.host_id)
        if attempt.n != n or host is None:
            raise Conflict("lease_lost", "the run has another attempt now: claim it again")
        return attempt, host

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncGenerator[None]:
        """Keep the lease for as long as the block takes."""
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            with contextlib.suppress(Expected):
                async with self.state.db.transaction() as tx:
                    await self.hold(tx)


class _Once:
    """Pieces of a call's output, each byte once, however often it is asked for again."""

    def __init__(self, on_piece: OnPiece | None) -> None:
        self._on_piece = on_piece
        self._given: dict[str, int] = {}

    def begin(self) -> OnPiece | None:
        if self._on_piece is None:
            return None
        give, came = self._on_piece, dict[str, int]()

        def take(stream: str, data: bytes) -> None:
            start = came.get(stream, 0)
            came[stream] = start + len(data)
            new = data[max(0, self._given.get(stream, 0) - start) :]
            if new:
                self._given[stream] = came[stream]
                give(stream, new)

        return take


async def remote_run(tx: Tx, caller: Caller, run_id: str) -> RunRow:
    """Raises NotFound, Conflict ``not_remote``."""
    run = await run_or_404(tx, caller, run_id)
    if run.driver not in (Driver.REMOTE, Driver.PERSON):
        raise Conflict("not_remote", f"the run is driven by its {run.driver}, not by a client")
    return run


def not_paused(run: RunRow) -> None:
    """Raise Conflict ``run_paused`` where nothing in the sandbox can answer."""
    if run.phase is Phase.PAUSED:
        raise Conflict("run_paused", "the run is paused: let its clock go on first")


async def bounded(state: ApiState, work: Callable[[], Awaitable[T]]) -> T:
    """Do what holds a whole file in memory; only so many at once."""
    async with state.bridge.transfers:
        return await work()


def shown(data: bytes) -> tuple[str, bool]:
    """Return output as an event shows it (its head and its tail), and whether something is left out."""
    if len(data) <= EVENT_TEXT:
        return data.decode(errors="replace"), False
    half = EVENT_TEXT // 2
    cut = f"\n… {len(data) - 2 * half} bytes left out …\n"
    return data[:half].decode(errors="replace") + cut + data[-half:].decode(errors="replace"), True


def call_event(type: EventType, id: str, offset: int, payload: dict[str, Any]) -> NewEvent:
    """A call's events are known by its id: a repeated call is one call."""
    return NewEvent(type, payload, call_source(id), offset, now())


def call_source(id: str) -> str:
    return f"drive.{id}"


def _environment(attempt: AttemptRow) -> dict[str, str]:
    """What a program of this run would have got, without its token."""
    return {name: value for name, value in (attempt.env or {}).items() if value != "redacted"}

"""The gate before every provider: breaker and concurrency of each way to a model, shared with other gateways (B12).

While a breaker is open nothing passes but one probe at a time: a request that waits anyway, or one that is made up where
none does. The table is the truth between gateways and for the queue; what is decided here takes effect here at once and
is written as soon as the database takes it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from service.domain.breakers import BreakerRules, BreakerState, Outcome, Window
from service.domain.errors import Unavailable
from service.gateway.concurrency import Turnstile
from service.gateway.ports import GateClosed, GateKey, TryOutcome
from service.store import breakers, clock
from service.store.breakers import Way
from service.store.database import Database, Tx, retrying
from service.store.notifications import BREAKERS, Notifications
from service.store.rows_models import BreakerRow

MAX_PAUSE_S = 120.0
"""Longest that a Retry-After keeps everybody waiting."""
MAX_WAYS = 10_000
_END_S = 2.0
_SYNC_S = 10.0
_LATE_S = 1.0
"""How long a due probe is left to requests that wait, before one is made up."""
_AS_OUTCOME = {
    TryOutcome.OK: Outcome.ANSWERED,
    TryOutcome.LIMITED: Outcome.LIMITED,
    TryOutcome.FAILED: Outcome.FAILED,
    # A credential that is rejected every time would burn one run after the other just like an outage.
    TryOutcome.REJECTED: Outcome.FAILED,
}
_REASONS = {
    TryOutcome.LIMITED: "the provider limits us (429)",
    TryOutcome.FAILED: "the provider fails or cannot be reached",
    TryOutcome.REJECTED: "the provider rejects the credential",
}
Probe = Callable[[Way], Awaitable[TryOutcome]]
"""Ask the model something small, past the gate. NEUTRAL: it could not be asked (the entry is gone)."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Lane:
    """One way as this process knows it."""

    way: Way
    turnstile: Turnstile
    window: Window
    state: BreakerState = BreakerState.CLOSED
    manual: bool = False
    reason: str = ""
    failures: int = 0
    probe_at: float = field(default=float("inf"))
    """In the event loop's time."""
    told_limit: int | None = None
    unwritten: int = 0
    """Decisions of this process that the table does not have yet: until then it is behind."""
    changes: int = 0
    """Decisions of this process."""

    def due(self, now: float) -> bool:
        return self.state is not BreakerState.CLOSED and not self.manual and now >= self.probe_at


class _Slot:
    def __init__(self, gates: "Gates", lane: _Lane, *, probe: bool) -> None:
        self._gates, self._lane, self._probe = gates, lane, probe
        self._told = False

    def report(self, outcome: TryOutcome, retry_after_s: float | None = None) -> None:
        """The first report counts."""
        if not self._told:
            self._told = True
            self._gates.note(self._lane, outcome, retry_after_s, probe=self._probe)

    def close(self) -> None:
        """A probe without a word leaves the way as it was: the next one may try at once."""
        if self._probe and not self._told:
            self.report(TryOutcome.NEUTRAL)


class Gates:
    """The gate of a gateway process. ``run`` keeps it in step with the others."""

    def __init__(self, db: Database, notifications: Notifications, rules: BreakerRules | None = None) -> None:
        self._db, self._notifications = db, notifications
        self._rules = rules or BreakerRules()
        self._probe: Probe | None = None
        self._lanes: dict[tuple[str, str, str], _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def probe_with(self, probe: Probe) -> None:
        """Ask with ``probe`` where a probe is due and no request waits that could be it."""
        self._probe = probe

    @asynccontextmanager
    async def slot(self, key: GateKey, patience_s: float) -> AsyncGenerator[_Slot]:
        """Wait at most ``patience_s`` for a place. One slot is one try. Raises GateClosed."""
        lane = self._lane(Way(key.provider, key.model_id, key.credential_id or "", key.project_id))
        lane.turnstile.allow(key.max_concurrency)
        try:
            async with asyncio.timeout(patience_s):
                probe = await self._enter(lane)
        except TimeoutError as error:
            raise GateClosed(lane.reason or "no place among the provider's requests came free") from error
        slot = _Slot(self, lane, probe=probe)
        try:
            yield slot
        finally:
            slot.close()
            lane.turnstile.exit()

    def note(self, lane: _Lane, outcome: TryOutcome, retry_after_s: float | None, *, probe: bool) -> None:
        """Count how a try went."""
        now = asyncio.get_running_loop().time()
        turnstile = lane.turnstile
        if outcome is TryOutcome.LIMITED:
            turnstile.limit.limited(now, turnstile.in_use)
            turnstile.pause_until = max(turnstile.pause_until, now + min(retry_after_s or 0.0, MAX_PAUSE_S))
        elif outcome is TryOutcome.OK:
            turnstile.limit.answered(turnstile.in_use)
            turnstile.poke()
        counted = _AS_OUTCOME.get(outcome)
        if probe:
            self._after_probe(lane, outcome, now)
        elif counted is not None and lane.window.add(now, counted) and lane.state is BreakerState.CLOSED:
            self._open(lane, _REASONS.get(outcome, "too many requests failed"), now)

    async def run(self) -> None:
        """Follow what other gateways and operators decide, and probe what nobody waits for; for ever."""
        try:
            async with self._notifications.subscribe(BREAKERS) as changes:
                while True:
                    try:
                        await self.sync()
                    except Unavailable:
                        log.warning("breakers_wait")
                    self._probe_quiet_ones()
                    await changes.wait(self._until_next())
        finally:
            await self._end()

    async def _end(self) -> None:
        """Let what is being written be written; what takes longer than a moment is broken off."""
        if self._tasks:
            _, late = await asyncio.wait({*self._tasks}, timeout=_END_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def sync(self) -> None:
        """Take over what the table says, and say the present limits. Raises Unavailable."""
        before = {key: lane.changes for key, lane in self._lanes.items()}
        async with self._db.reading() as tx:
            rows, now = await breakers.all_of(tx), await clock.now(tx)
        for row in rows:
            lane = self._lane(breakers.way_of(row))
            # What was read may be older than what was decided here meanwhile, also where that is written by now.
            if lane.unwritten == 0 and lane.changes == before.get(lane.way.key, 0):
                self._apply(lane, row, now.timestamp())
        for lane in [*self._lanes.values()]:
            present = lane.turnstile.limit.present
            if present != lane.told_limit and (lane.told_limit is not None or present < lane.turnstile.limit.most):
                async with self._db.transaction() as tx:
                    await breakers.say_limit(tx, lane.way, present)
                lane.told_limit = present
        self._forget_idle()

    async def _enter(self, lane: _Lane) -> bool:
        """Return whether the caller is the probe."""
        turnstile = lane.turnstile
        if not turnstile.waiting and turnstile.try_enter():
            return False
        turn = await turnstile.first()
        try:
            while not turnstile.try_enter():
                now = asyncio.get_running_loop().time()
                if lane.due(now) and await self._take_probe(lane):
                    turnstile.in_use += 1
                    return True
                await turnstile.rest(turn, self._rest_s(lane))
            return False
        finally:
            turnstile.leave(turn)

    def _rest_s(self, lane: _Lane) -> float:
        left = lane.probe_at - asyncio.get_running_loop().time()
        return min(_SYNC_S, left) if left > 0 and lane.state is not BreakerState.CLOSED else _SYNC_S

    async def _take_probe(self, lane: _Lane) -> bool:
        """Take the way's one probe, if nobody else has it. Without a database the local clock decides."""
        lease = self._rules.probe_s
        lane.probe_at = asyncio.get_running_loop().time() + lease
        try:
            async with self._db.transaction() as tx:
                row = await breakers.take_probe(tx, lane.way, lease)
                if row is None:
                    row, now = await breakers.get(tx, lane.way), await clock.now(tx)
                    if row is not None:
                        self._apply(lane, row, now.timestamp())
                    return False
        except Unavailable:
            return True
        lane.state = BreakerState.HALF_OPEN
        return True

    def _after_probe(self, lane: _Lane, outcome: TryOutcome, now: float) -> None:
        if outcome is TryOutcome.NEUTRAL:
            lane.probe_at = now
            self._write(lane, breakers.probe_failed, lane.reason, 0.0)
        elif outcome is TryOutcome.OK:
            self._close(lane)
            self._write(lane, breakers.probe_answered)
        else:
            lane.failures += 1
            lane.state, lane.reason = BreakerState.OPEN, _REASONS[outcome]
            pause = self._rules.pause_s(lane.failures)
            lane.probe_at = now + pause
            self._write(lane, breakers.probe_failed, lane.reason, pause)
        lane.turnstile.poke()

    def _open(self, lane: _Lane, reason: str, now: float) -> None:
        log.warning("breaker_opens", model=lane.way.model_id, provider=lane.way.provider, why=reason)
        lane.state, lane.reason, lane.failures = BreakerState.OPEN, reason, 1
        lane.probe_at = now + self._rules.pause_s(1)
        lane.turnstile.shut = True
        lane.window.clear()
        self._write(lane, breakers.open, reason, self._rules.pause_s(1))

    def _close(self, lane: _Lane) -> None:
        log.info("breaker_closes", model=lane.way.model_id, provider=lane.way.provider)
        lane.state, lane.reason, lane.failures, lane.manual = BreakerState.CLOSED, "", 0, False
        lane.probe_at = float("inf")
        lane.window.clear()
        lane.turnstile.limit.restart()
        lane.turnstile.shut = False
        lane.turnstile.poke()

    def _apply(self, lane: _Lane, row: BreakerRow, db_now: float) -> None:
        """Believe the table."""
        if row.state is BreakerState.CLOSED:
            if lane.state is not BreakerState.CLOSED:
                self._close(lane)
            return
        now = asyncio.get_running_loop().time()
        lane.state, lane.manual, lane.failures = row.state, row.manual, row.failures
        lane.reason = row.reason or "closed by an operator"
        lane.probe_at = now if row.next_probe_at is None else now + row.next_probe_at.timestamp() - db_now
        lane.turnstile.shut = True
        lane.turnstile.poke()

    def _probe_quiet_ones(self) -> None:
        now = asyncio.get_running_loop().time()
        for lane in self._lanes.values():
            if self._probe is not None and lane.due(now - _LATE_S):
                self._start(self._made_up_probe(lane, self._probe))

    async def _made_up_probe(self, lane: _Lane, probe: Probe) -> None:
        if not await self._take_probe(lane):
            return
        outcome = TryOutcome.FAILED
        try:
            async with asyncio.timeout(self._rules.probe_s):
                outcome = await probe(lane.way)
        except (TimeoutError, Unavailable):
            log.info("probe_failed", model=lane.way.model_id)
        # What cannot be asked any more must not keep its runs for ever: they find out themselves.
        outcome = TryOutcome.OK if outcome is TryOutcome.NEUTRAL else outcome
        self._after_probe(lane, outcome, asyncio.get_running_loop().time())

    def _until_next(self) -> float:
        now = asyncio.get_running_loop().time()
        waits = [
            lane.probe_at + _LATE_S - now for lane in self._lanes.values() if lane.state is not BreakerState.CLOSED
        ]
        return max(0.05, min([_SYNC_S, *waits]))

    def _lane(self, way: Way) -> _Lane:
        lane = self._lanes.get(way.key)
        if lane is None:
            lane = self._lanes[way.key] = _Lane(way, Turnstile(None), Window(self._rules))
        return lane

    def _forget_idle(self) -> None:
        """Keep the memory bounded where models come and go."""
        idle = [
            key
            for key, lane in self._lanes.items()
            if lane.state is BreakerState.CLOSED and not lane.turnstile.in_use and not lane.turnstile.waiting
        ]
        for key in idle[: max(0, len(self._lanes) - MAX_WAYS)]:
            del self._lanes[key]

    def _write(self, lane: _Lane, change: Callable[..., Awaitable[BreakerRow | None]], *arguments: object) -> None:
        async def write(tx: Tx) -> None:
            await change(tx, lane.way, *arguments)

        lane.unwritten += 1
        lane.changes += 1
        self._start(self._until_written(lane, write))

    async def _until_written(self, lane: _Lane, write: Callable[[Tx], Awaitable[None]]) -> None:
        try:
            await retrying(self._db, write, timeout_s=MAX_PAUSE_S)
        except Unavailable:
            log.warning("breaker_unwritten", model=lane.way.model_id)
        finally:
            lane.unwritten -= 1

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

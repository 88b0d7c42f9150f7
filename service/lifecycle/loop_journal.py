"""The journal of one attempt's loop: every step is an event with the whole value, so that a successor goes on from it.

One transaction stores a step, the events that it means and the run's counters; a repeated one changes nothing.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

from service.domain.cleaning import clean_str, is_clean
from service.domain.errors import Fault
from service.domain.events import EventType, NewEvent
from service.domain.limits import MIB
from service.lifecycle.context import Context
from service.scaffolds.contract import Translated
from service.scaffolds.loops import Act, JournalFull, Tell, silent
from service.store import events, output
from service.store.database import Tx, retrying
from service.store.rows import AttemptRow

SOURCE, TOLD = "loop", "loop.told"
MAX_STEPS = 10_000
MAX_TOLD = 1000
"""Most events that one step may mean."""
MAX_VALUE_BYTES = 64 * MIB
PAGE = 1000


class LoopJournal:
    """Made by :meth:`open` for one attempt in one process."""

    def __init__(self, ctx: Context, attempt: AttemptRow, known: dict[tuple[str, str], dict[str, Any]], n: int) -> None:
        self._ctx = ctx
        self._attempt = attempt
        self._known = known
        self._next = n
        self._writing = asyncio.Lock()

    @classmethod
    async def open(cls, ctx: Context, attempt: AttemptRow) -> "LoopJournal":
        """Read what this attempt's loop has recorded. Raises Unavailable."""

        async def read(tx: Tx) -> tuple[dict[tuple[str, str], dict[str, Any]], int]:
            return await _read(tx, attempt)

        known, n = await retrying(ctx.db, read, ctx.timing.database_patience_s)
        return cls(ctx, attempt, known, n)

    async def step(self, kind: str, key: str, act: Act, tell: Tell = silent) -> dict[str, Any]:
        """See :class:`service.scaffolds.loops.Journal`."""
        recorded = self._known.get((kind, key))
        if recorded is not None:
            return await self._value(recorded)
        if self._next >= MAX_STEPS:
            raise JournalFull
        # The living loop sees what a successor would: JSON has been through the same mill.
        value = cast("dict[str, Any]", json.loads(json.dumps(await act())))
        self._ctx.crash.reach("loop.acted")
        await self._record(kind, key, value, tell(value))
        return value

    def recorded(self, kind: str) -> int:
        """Return how many steps of this kind there are."""
        return sum(one == kind for one, _ in self._known)

    async def _record(self, kind: str, key: str, value: dict[str, Any], told: Sequence[Translated]) -> None:
        async with self._writing:
            n, self._next = self._next, self._next + 1
            now = self._ctx.clock.now()
            means = [
                NewEvent(t.type, dict(t.payload), TOLD, n * MAX_TOLD + i, now) for i, t in enumerate(told[:MAX_TOLD])
            ]
            payload = _payload(kind, key, value)
            batch = [*means, NewEvent(EventType.LOOP_STEP, payload, SOURCE, n, now)]

            async def store(tx: Tx) -> None:
                await self._store(tx, batch, turns=int(kind == "model"))

            await retrying(self._ctx.db, store, self._ctx.timing.database_patience_s)
            self._known[kind, key] = payload
        self._ctx.crash.reach("loop.recorded")

    async def _store(self, tx: Tx, batch: list[NewEvent], turns: int) -> None:
        attempt = self._attempt
        if not await self._ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, batch):
            return  # an earlier try was committed, its answer lost
        calls = [e.payload for e in batch if e.type == EventType.TOOL_CALL]
        doing = clean_str(str(calls[-1].get("name", ""))[:80])[0] if calls else None
        await output.note(tx, attempt, attempt.offsets, turns=turns, tool_calls=len(calls), doing=doing)

    async def _value(self, payload: dict[str, Any]) -> dict[str, Any]:
        blob = payload.get("payload_blob")
        if blob is not None:
            data = await asyncio.to_thread(self._ctx.blobs.read_bytes, str(blob), MAX_VALUE_BYTES)
            payload = json.loads(data)
        text = payload.get("value_json")
        value = payload.get("value") if text is None else json.loads(text)
        if not isinstance(value, dict):
            raise Fault("journal_broken", f"step {payload.get('step')} {payload.get('key')} has no value")
        return cast("dict[str, Any]", value)


def _payload(kind: str, key: str, value: dict[str, Any]) -> dict[str, Any]:
    """Keep the value as it stands where the database can; text of it where that would change it."""
    payload = {"step": kind, "key": key, "value": value}
    return payload if is_clean(payload) else {"step": kind, "key": key, "value_json": json.dumps(value)}


async def _read(tx: Tx, attempt: AttemptRow) -> tuple[dict[tuple[str, str], dict[str, Any]], int]:
    known: dict[tuple[str, str], dict[str, Any]] = {}
    after, n = 0, 0
    while page := await events.read(tx, attempt.run_id, after, PAGE, [EventType.LOOP_STEP]):
        after = page[-1].seq
        for event in page:
            if event.attempt == attempt.n and event.source == SOURCE:
                known[str(event.payload.get("step")), str(event.payload.get("key"))] = event.payload
                n = max(n, event.source_offset + 1)
    return known, n

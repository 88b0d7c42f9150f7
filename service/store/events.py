"""The event log: the one function that appends (CONTRACTS 4), and the one that reads.

Numbers are dense per run over all attempts, because whoever appends holds the run's row lock.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, cast

import psycopg
from sqlalchemy import RowMapping, select, text

from service.domain.cleaning import clean_str, encode_payload
from service.domain.errors import FenceLost, NotFound
from service.domain.events import EVENT_VERSION, Event, EventType, NewEvent
from service.domain.limits import OUTPUT_EVENT_BYTES, PAYLOAD_BYTES
from service.domain.run_states import AttemptState
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.tables import run_events

COPY_FROM_ROWS = 65
"""From this many rows on, COPY is cheaper than one INSERT."""
OUTPUT_PAYLOAD_BYTES = 8 * OUTPUT_EVENT_BYTES
"""Output events are bounded by their text, which JSON may write six times as long; they never become blobs."""
READ_LIMIT = 2000
_KEPT_TEXT = 256

_HEAD = text("SELECT id, project_id, last_seq, last_event_at FROM runs WHERE id = :run_id FOR NO KEY UPDATE")
# Under the run's lock: where each source stands, and (for writers with a fence) whose the attempt is.
_STANDING = text("""
    SELECT k.source, a.fence, a.state, (SELECT max(e.source_offset) FROM run_events e WHERE e.run_id = :run_id
                                        AND e.attempt = :attempt AND e.source = k.source) AS last
    FROM unnest(CAST(:sources AS text[])) AS k(source)
    LEFT JOIN attempts a ON a.run_id = :run_id AND a.n = :attempt""")
_KNOWN = text("""
    SELECT k.source, k.source_offset
    FROM unnest(CAST(:sources AS text[]), CAST(:offsets AS bigint[])) AS k(source, source_offset)
    CROSS JOIN LATERAL (SELECT 1 FROM run_events e WHERE e.run_id = :run_id AND e.attempt = :attempt
                        AND e.source = k.source AND e.source_offset = k.source_offset LIMIT 1) AS known""")
_INSERT = """
    INSERT INTO run_events (run_id, seq, attempt, source, source_offset, ts, type, v, payload)
    SELECT :run_id, k.seq, :attempt, k.source, k.source_offset, k.ts, k.type, :v, CAST(k.payload AS jsonb)
    FROM unnest(CAST(:seqs AS bigint[]), CAST(:sources AS text[]), CAST(:offsets AS bigint[]),
                CAST(:times AS timestamptz[]), CAST(:types AS text[]), CAST(:payloads AS text[]))
         AS k(seq, source, source_offset, ts, type, payload)"""
_ADVANCE = """
    UPDATE runs SET last_seq = :last_seq, event_count = event_count + :added, last_event_at = :ts,
                    revision = revision + 1, updated_at = clock_timestamp()
    WHERE id = :run_id RETURNING pg_notify('run_events', id || ' ' || last_seq)"""
_ADVANCE_ONLY = text(_ADVANCE)
_INSERT_AND_ADVANCE = text(f"WITH inserted AS ({_INSERT}) {_ADVANCE}")
_COPY = "COPY run_events (run_id, seq, attempt, source, source_offset, ts, type, v, payload) FROM STDIN"


class BlobSink(Protocol):
    """The part of the content store that takes payloads too large for a row."""

    def store_bytes(self, data: bytes) -> tuple[str, int]: ...


@dataclass(frozen=True, slots=True)
class _Encoded:
    event: NewEvent
    payload: bytes


async def append(tx: Tx, run_id: str, attempt: int, fence: int | None, events: Sequence[NewEvent]) -> list[int]:
    """Append ``events`` in order; return the numbers of those that were new (repeated ones are dropped).

    With a ``fence``, raises FenceLost unless it still is the attempt's; nothing is written then. A payload above
    ``PAYLOAD_BYTES`` is cut to its short fields: use :class:`EventLog` for payloads that may be large.
    """
    encoded = [_encode(e) for e in events]
    return await _store(tx, run_id, attempt, fence, [_Encoded(e.event, _cut(e)) if _large(e) else e for e in encoded])


class EventLog:
    """Appends with payloads of any size: large ones go to the content store and leave a reference behind."""

    def __init__(self, blobs: BlobSink) -> None:
        self._blobs = blobs

    async def append(
        self, tx: Tx, run_id: str, attempt: int, fence: int | None, events: Sequence[NewEvent]
    ) -> list[int]:
        """As :func:`append`; a large payload becomes ``{"payload_blob": sha256, "payload_bytes": n, short fields}``."""
        encoded = [_encode(e) for e in events]
        stored: list[tuple[str, int]] = []
        for i, item in enumerate(encoded):
            if _large(item):  # durable before the row that names it
                blob = await asyncio.to_thread(self._blobs.store_bytes, item.payload)
                stored.append(blob)
                encoded[i] = _Encoded(item.event, _cut(item, blob[0]))
        numbers = await _store(tx, run_id, attempt, fence, encoded)
        if stored:
            project_id = (await lock_run(tx, run_id))["project_id"]
            await add_refs(tx, project_id, "event", run_id, stored)
        return numbers


async def read(tx: Tx, run_id: str, after: int, limit: int, types: Iterable[str] | None = None) -> list[Event]:
    """Return at most ``limit`` (≤ 2 000) events with numbers above ``after``, in order. The caller checked the project."""
    query = select(run_events).where(run_events.c.run_id == run_id, run_events.c.seq > after)
    if types is not None:
        query = query.where(run_events.c.type.in_(list(types)))
    rows = await tx.execute(query.order_by(run_events.c.seq).limit(min(limit, READ_LIMIT)))
    names = Event.__dataclass_fields__
    return [Event(**{name: row[name] for name in names}) for row in rows.mappings()]


async def of_source(tx: Tx, run_id: str, attempt: int, source: str, *, limit: int = 10) -> list[Event]:
    """Return the first events of one source, in order. The caller checked the project."""
    ours = (run_events.c.run_id == run_id, run_events.c.attempt == attempt, run_events.c.source == source)
    rows = await tx.execute(select(run_events).where(*ours).order_by(run_events.c.source_offset).limit(limit))
    names = Event.__dataclass_fields__
    return [Event(**{name: row[name] for name in names}) for row in rows.mappings()]


async def _store(tx: Tx, run_id: str, attempt: int, fence: int | None, events: list[_Encoded]) -> list[int]:
    head = (await tx.execute(_HEAD, {"run_id": run_id})).mappings().one_or_none()
    if head is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    fresh = await _drop_known(tx, run_id, attempt, fence, events)
    if not fresh:
        return []
    batch = _Batch(run_id, attempt, head["last_seq"] + 1, _never_back(head, fresh), fresh)
    if len(fresh) < COPY_FROM_ROWS:
        await tx.execute(_INSERT_AND_ADVANCE, {**batch.columns(), **batch.advance()})
    else:
        await _copy(tx, batch)
        await tx.execute(_ADVANCE_ONLY, batch.advance())
    return batch.numbers


async def _drop_known(tx: Tx, run_id: str, attempt: int, fence: int | None, events: list[_Encoded]) -> list[_Encoded]:
    """Check the fence; drop what is stored already, and repetitions within the batch (the first one counts)."""
    unique = {(e.event.source, e.event.source_offset): e for e in reversed(events)}
    keys: dict[str, Any] = {"run_id": run_id, "attempt": attempt}
    sources = list({source for source, _ in unique}) or [""]
    standing = list(await tx.execute(_STANDING, {**keys, "sources": sources}))
    if fence is not None and (standing[0].fence != fence or standing[0].state == AttemptState.LOST):
        raise FenceLost(run_id, attempt)
    last = {row.source: row.last for row in standing}
    suspects = [key for key in unique if last[key[0]] is not None and key[1] <= last[key[0]]]
    known: set[tuple[str, int]] = set()
    if suspects:
        pairs = {"sources": [s for s, _ in suspects], "offsets": [o for _, o in suspects]}
        known = {(row.source, row.source_offset) for row in await tx.execute(_KNOWN, {**keys, **pairs})}
    return [e for key, e in reversed(unique.items()) if key not in known]


def _never_back(head: RowMapping, events: list[_Encoded]) -> list[datetime]:
    latest: datetime = head["last_event_at"] or datetime.min.replace(tzinfo=UTC)
    times: list[datetime] = []
    for e in events:
        latest = max(latest, e.event.ts)
        times.append(latest)
    return times


@dataclass(frozen=True, slots=True)
class _Batch:
    """Events that are new, with their numbers (from ``first``) and times."""

    run_id: str
    attempt: int
    first: int
    times: list[datetime]
    events: list[_Encoded]

    @property
    def numbers(self) -> list[int]:
        return list(range(self.first, self.first + len(self.events)))

    def columns(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "v": EVENT_VERSION,
            "seqs": self.numbers,
            "sources": [e.event.source for e in self.events],
            "offsets": [e.event.source_offset for e in self.events],
            "times": self.times,
            "types": [str(e.event.type) for e in self.events],
            "payloads": [e.payload.decode() for e in self.events],
        }

    def rows(self) -> Iterator[tuple[Any, ...]]:
        for seq, ts, e in zip(self.numbers, self.times, self.events, strict=True):
            one = e.event
            key = (self.run_id, seq, self.attempt, one.source, one.source_offset)
            yield (*key, ts, str(one.type), EVENT_VERSION, e.payload.decode())

    def advance(self) -> dict[str, Any]:
        ends = {"last_seq": self.numbers[-1], "ts": self.times[-1]}
        return {"run_id": self.run_id, "added": len(self.events), **ends}


async def _copy(tx: Tx, batch: _Batch) -> None:
    raw = await tx.get_raw_connection()
    connection = cast("psycopg.AsyncConnection[Any]", raw.driver_connection)
    async with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for row in batch.rows():
            await copy.write_row(row)


def _encode(event: NewEvent) -> _Encoded:
    return _Encoded(event, encode_payload(event.payload))


def _large(e: _Encoded) -> bool:
    return len(e.payload) > (OUTPUT_PAYLOAD_BYTES if e.event.type == EventType.OUTPUT else PAYLOAD_BYTES)


def _cut(e: _Encoded, blob: str | None = None) -> bytes:
    """Keep the short scalar fields of a large payload, so that readers need not fetch the blob for each event."""
    kept: dict[str, Any] = {"payload_bytes": len(e.payload), "payload_blob": blob}
    for key, value in e.event.payload.items():
        if len(kept) >= 18:
            break
        short = isinstance(value, str) and len(value) <= _KEPT_TEXT
        if len(key) <= 64 and (short or isinstance(value, bool | int | float)):
            kept.setdefault(clean_str(key)[0], value)
    return encode_payload(json.loads(encode_payload(kept)))

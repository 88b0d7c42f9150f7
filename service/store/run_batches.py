"""Runs in numbers: inserted and cancelled by few statements, with the rows, events and notifications of one at a time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import psycopg
from pydantic import BaseModel
from sqlalchemy import text

from service.domain.cleaning import clean_json, encode_payload
from service.domain.events import EVENT_VERSION, EventType
from service.domain.ids import new_ids
from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode
from service.store import clock
from service.store.announcements import announce_phase, anybody_listens
from service.store.database import Tx
from service.store.notifications import QUEUE
from service.store.phases import SOURCE, notify
from service.store.rows import Json, NewRun

_PLAIN = (
    "project_id", "task_id", "agent_id", "sample", "max_attempts", "priority", "derived_from", "environment", "runtime",
    "plan", "driver", "model_id", "provider_tools", "replay_of", "keep_on_failure_s", "kit", "evaluation_id",
)  # fmt: skip
_MADE = (
    "id", "phase", "hold", "limits", "budget", "network", "labels", "flags", "queued_at", "last_event_at", "updated_at",
    "last_seq", "event_count",
)  # fmt: skip
_COPY_RUNS = f"COPY runs ({', '.join((*_PLAIN, *_MADE))}) FROM STDIN"
_COPY_EVENTS = "COPY run_events (run_id, seq, attempt, source, source_offset, ts, type, v, payload) FROM STDIN"
_STOP, _PHASE = EventType.STOP_REQUESTED, EventType.RUN_PHASE
# As runs.request_stop does it to a run that nobody works on. Runs that are being claimed just now are left alone.
_CANCEL = text(f"""
    WITH chosen AS (
        SELECT id FROM runs WHERE evaluation_id = :evaluation_id AND phase IN ('queued', 'held')
        ORDER BY id LIMIT :most FOR NO KEY UPDATE SKIP LOCKED),
    changed AS (
        UPDATE runs r SET phase = 'done', outcome = '{Outcome.CANCELLED}', ended_because = '{EndedBecause.CANCELLED}',
            hold = NULL, doing = NULL, ended_at = coalesce(r.ended_at, clock_timestamp()), stop_mode = '{StopMode.DISCARD}',
            stop_requested_at = coalesce(r.stop_requested_at, clock_timestamp()), revision = r.revision + 2,
            last_seq = r.last_seq + 2, event_count = r.event_count + 2, updated_at = clock_timestamp(),
            last_event_at = greatest(r.last_event_at, clock_timestamp())
        FROM chosen c WHERE r.id = c.id RETURNING r.id, r.attempt, r.revision, r.last_seq, r.last_event_at),
    said AS (
        INSERT INTO run_events (run_id, seq, attempt, source, source_offset, ts, type, v, payload)
        SELECT c.id, c.last_seq - 1 + k.n, c.attempt, k.source, c.revision - 1 + k.n, c.last_event_at, k.type,
               {EVENT_VERSION}, CAST(k.payload AS jsonb)
        FROM changed c CROSS JOIN (VALUES (0, '{SOURCE}:{_STOP}', '{_STOP}', :stop), (1, '{SOURCE}:{_PHASE}', '{_PHASE}', :phase))
             AS k(n, source, type, payload))
    SELECT id, pg_notify('run_events', id || ' ' || last_seq), pg_notify('runs', id || ' done') FROM changed""")  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class _Batch:
    ids: list[str]
    phase: Phase
    hold: Json | None
    at: datetime


async def insert_many(tx: Tx, news: Sequence[NewRun], hold: Json | None = None) -> list[str]:
    """Insert runs with their first events and wake claimers once; return their ids, in the order of ``news``.

    Claimers take them in that order. With ``hold`` they are held, not queued. Counts of evaluations are the caller's
    (:func:`members.count_inserted`). Tasks and agents must be the project's own.
    """
    if not news:
        return []
    batch = _Batch(new_ids("run", len(news)), Phase.HELD if hold else Phase.QUEUED, hold, await clock.now(tx))
    raw = await tx.get_raw_connection()
    connection = cast("psycopg.AsyncConnection[Any]", raw.driver_connection)
    async with connection.cursor() as cursor:
        for statement, rows in ((_COPY_RUNS, _runs(batch, news)), (_COPY_EVENTS, _events(batch))):
            async with cursor.copy(statement.encode()) as copy:
                for row in rows:
                    await copy.write_row(row)
    if hold is None:
        await notify(tx, QUEUE, batch.ids[0])
    elif await anybody_listens(tx, news[0].project_id):
        for run_id in batch.ids:
            await announce_phase(tx, run_id, Phase.QUEUED, Phase.HELD)
    return batch.ids


async def cancel_waiting(tx: Tx, project_id: str, evaluation_id: str, most: int) -> int:
    """Cancel up to ``most`` runs of the evaluation that nobody works on; return how many."""
    ended = {"phase": Phase.DONE, "outcome": Outcome.CANCELLED, "ended_because": EndedBecause.CANCELLED}
    said = {"stop": json.dumps({"mode": StopMode.DISCARD}), "phase": json.dumps(ended)}
    rows = await tx.execute(_CANCEL, {"evaluation_id": evaluation_id, "most": most, **said})
    ids = [row.id for row in rows]
    if ids and await anybody_listens(tx, project_id):
        for run_id in ids:
            await announce_phase(tx, run_id, Phase.QUEUED, Phase.DONE)
    return len(ids)


def _runs(batch: _Batch, news: Sequence[NewRun]) -> Iterator[tuple[Any, ...]]:
    texts = _Texts()
    hold = None if batch.hold is None else json.dumps(batch.hold)
    for run_id, new in zip(batch.ids, news, strict=True):
        plain = (_plain(getattr(new, name)) for name in _PLAIN)
        parts = (texts.of(part) for part in (new.limits, new.budget, new.network, new.labels))
        times = (batch.at, batch.at, batch.at)
        yield (*plain, run_id, str(batch.phase), hold, *parts, [str(flag) for flag in new.flags], *times, 1, 1)


def _events(batch: _Batch) -> Iterator[tuple[Any, ...]]:
    payload: dict[str, Any] = {"phase": batch.phase, "outcome": None, "ended_because": None}
    if batch.hold is not None:
        payload["hold"] = batch.hold
    said = encode_payload(payload).decode()
    for run_id in batch.ids:
        yield run_id, 1, 0, f"{SOURCE}:{_PHASE}", 1, batch.at, str(_PHASE), EVENT_VERSION, said


class _Texts:
    """JSON of what thousands of runs have in common, made once. Its keys are identities: the runs keep them alive."""

    def __init__(self) -> None:
        self._made: dict[int, str] = {}

    def of(self, value: BaseModel | Mapping[str, str]) -> str:
        made = self._made.get(id(value))
        if made is None:
            body = value.model_dump(mode="json") if isinstance(value, BaseModel) else dict(value)
            made = self._made[id(value)] = json.dumps(clean_json(body))
        return made


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value

"""What is kept of a conformance case once its run is over: what the case is judged by, and evidence for people."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from service.domain.events import EventType
from service.domain.models import TokenUsage
from service.models.scripted.exchanges import Exchange
from service.scaffolds.conformance.seen import Seen
from service.store import artifacts, events, model_requests
from service.store.database import Tx
from service.store.rows import RunRow
from service.store.rows_requests import ModelRequestRow

_REQUESTS = 2000
_FILES = 100
_TAIL_EVENTS = 200
_TAIL_CHARS = 4000
_KINDS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


async def settled(tx: Tx, run_id: str) -> bool:
    """Tell whether the ledger has closed all of the run's requests."""
    return all(row.state == "finished" for row in await model_requests.list_for_run(tx, run_id, 0, _REQUESTS))


async def seen_of(tx: Tx, run: RunRow, exchanges: Sequence[Exchange], stop_s: float | None) -> Seen:
    """Return what was seen of a run that is done."""
    ledger = await model_requests.list_for_run(tx, run.id, 0, _REQUESTS)
    files = await artifacts.list(tx, run.id, 0, _FILES)
    driver = await events.read(tx, run.id, 0, _REQUESTS, [EventType.DRIVER])
    acts = await events.read(tx, run.id, 0, _REQUESTS, [EventType.DESKTOP_ACTION])
    return Seen(
        outcome=run.outcome,
        ended_because=run.ended_because,
        wall_s=run.wall_s,
        files={entry.path: entry.sha256 for entry in files.items if entry.kind != "directory"},
        asked=len(exchanges),
        statuses=[exchange.status for exchange in exchanges],
        sent=_total([exchange.usage for exchange in exchanges if exchange.usage is not None]),
        counted=_total([_usage(row) for row in ledger if row.usage_known]),
        unknown=sum(not row.usage_known and row.status == 200 for row in ledger),
        events=run.event_count,
        output_bytes=run.output_text_bytes,
        stop_s=stop_s,
        # A large payload lies in the content store: whatever is that large has its pictures.
        batches=sum(bool(event.payload.get("after") or event.payload.get("payload_blob")) for event in acts),
        driver_events=[str(event.payload.get("action")) for event in driver],
    )


async def evidence_of(tx: Tx, run: RunRow, exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return what a person wants to look at: the events' types, the output's end, the requests on the wire."""
    found = await events.read(tx, run.id, max(0, run.last_seq - _TAIL_EVENTS), _TAIL_EVENTS)
    said = "".join(str(event.payload.get("text", "")) for event in found if event.type == EventType.OUTPUT)
    wire = [
        {"method": e.method, "path": e.path, "turn": e.turn, "status": e.status, "complete": e.complete,
         "body_bytes": len(e.body), "usage": e.usage.model_dump() if e.usage else None}
        for e in exchanges[-_TAIL_EVENTS:]
    ]  # fmt: skip
    return {
        "run_id": run.id,
        "ended_because": run.ended_because,
        "wall_s": run.wall_s,
        "flags": list(run.flags),
        "events": [{"seq": event.seq, "type": event.type} for event in found],
        "output_end": said[-_TAIL_CHARS:],
        "wire": wire,
    }


def _usage(row: ModelRequestRow) -> TokenUsage:
    return TokenUsage(**{name: getattr(row, name) for name in _KINDS})


def _total(usages: Sequence[TokenUsage]) -> TokenUsage:
    return reduce(TokenUsage.plus, usages, TokenUsage())

"""Deliveries are made in the transaction of the change that they tell of: with it, or not at all.

One statement each, which finds nothing to do where the project has no webhook for it.
"""

from typing import Any

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from service.domain.ids import new_id
from service.domain.run_states import Phase
from service.domain.webhooks import HookEvent
from service.store.database import Tx
from service.store.notifications import WEBHOOKS

BACKLOG = 10_000
"""Deliveries of one webhook that may wait; what comes on top is dead at once (``backlog_full``)."""
OF_PHASE = {
    Phase.RUNNING: HookEvent.RUN_RUNNING,
    Phase.AWAITING_CONFIRMATION: HookEvent.RUN_AWAITING,
    Phase.HELD: HookEvent.RUN_HELD,
    Phase.DONE: HookEvent.RUN_DONE,
}
_WAITED = frozenset({Phase.AWAITING_CONFIRMATION, Phase.PAUSED})


def _rfc3339(time: str) -> str:
    return f"""to_char({time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""


_RUN = f"""jsonb_build_object(
    'id', r.id, 'revision', r.revision, 'phase', r.phase, 'hold', r.hold, 'outcome', r.outcome,
    'ended_because', r.ended_because, 'attempt', r.attempt, 'sample', r.sample,
    'task', jsonb_build_object('id', t.id, 'name', t.name), 'agent', jsonb_build_object('id', a.id, 'label', a.label),
    'started_at', {_rfc3339("r.started_at")}, 'ended_at', {_rfc3339("r.ended_at")},
    'deadline_at', {_rfc3339("r.deadline_at")}, 'verdict', jsonb_build_object(
        'state', r.verdict_state, 'score', r.score, 'max_score', r.max_score),
    'flags', to_jsonb(r.flags), 'labels', r.labels)"""


def _insert(data: str, source: str) -> str:
    return f"""
    WITH made AS (
        INSERT INTO webhook_deliveries
            (webhook_id, project_id, message_id, type, payload, state, last_error, next_at, ended_at)
        SELECT w.id, w.project_id, :message_id, :type,
               jsonb_build_object('type', CAST(:type AS text), 'timestamp', {_rfc3339("clock_timestamp()")}, 'data', {data}),
               CASE WHEN b.waiting < {BACKLOG} THEN 'pending' ELSE 'dead' END,
               CASE WHEN b.waiting < {BACKLOG} THEN NULL ELSE 'backlog_full' END,
               CASE WHEN b.waiting < {BACKLOG} THEN clock_timestamp() END,
               CASE WHEN b.waiting < {BACKLOG} THEN NULL ELSE clock_timestamp() END
        FROM {source}
        CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (
            SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.state = 'pending' LIMIT {BACKLOG}) AS p) AS b
        WHERE w.enabled AND (:type = ANY(w.events) OR '*' = ANY(w.events))
        RETURNING webhook_id)
    SELECT pg_notify('{WEBHOOKS}', webhook_id) FROM made"""  # noqa: S608 - constants only


_OF_RUN = text(
    _insert(
        _RUN,
        """runs r JOIN tasks t ON t.id = r.task_id JOIN agents a ON a.id = r.agent_id
        JOIN webhooks w ON w.project_id = r.project_id AND r.id = :run_id AND r.labels @> w.labels""",
    )
)
_OF_ANYTHING = text(
    _insert("CAST(:data AS jsonb)", "webhooks w JOIN projects p ON p.id = w.project_id AND p.id = :project_id AND :labels @> w.labels")
).bindparams(bindparam("labels", type_=JSONB), bindparam("data", type_=JSONB))  # fmt: skip
_ANY = text("SELECT EXISTS (SELECT FROM webhooks WHERE project_id = :project_id AND enabled)")


async def anybody_listens(tx: Tx, project_id: str) -> bool:
    """Tell whether the project has a webhook at all: what changes many runs need not ask for each then."""
    return bool((await tx.execute(_ANY, {"project_id": project_id})).scalar_one())


async def announce_phase(tx: Tx, run_id: str, before: Phase, phase: Phase) -> None:
    """Tell of the phase that the run has just entered, if it is one that webhooks are told of.

    A run that goes on after it waited is no news.
    """
    event = OF_PHASE.get(phase)
    if event is not None and not (phase is Phase.RUNNING and before in _WAITED):
        await tx.execute(_OF_RUN, {"run_id": run_id, "type": event.value, "message_id": new_id("msg")})


async def announce(
    tx: Tx, project_id: str, event: HookEvent, data: dict[str, Any], labels: dict[str, str] | None = None
) -> None:
    """Tell the project's webhooks for ``event`` whose labels are among ``labels``; ``data`` is the compact resource."""
    values = {"project_id": project_id, "type": event.value, "data": data, "labels": labels or {}}
    await tx.execute(_OF_ANYTHING, values | {"message_id": new_id("msg")})

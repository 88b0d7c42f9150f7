"""Held, not burnt: runs that no host can take wait in phase ``held`` with a reason that a person can read."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, func, select, text

from service.domain.placement import Capacity, Wait, nowhere, too_large
from service.domain.run_states import Phase
from service.store import capacity
from service.store.breakers import UNREACHABLE
from service.store.database import Tx
from service.store.phases import change_phase, touch
from service.store.tables import runs

UNPLACEABLE = "no_host_offers_it"
TOO_LARGE = "no_host_large_enough"
PROVIDER_UNAVAILABLE = "provider_unavailable"
_AT_ONCE = 200
_FIRST_BACK = 4
"""Runs of one model that are queued in the first seconds after its provider is back; doubles every few seconds."""
_DOUBLES_EVERY_S = 5.0

# Only while some host is up: with none at all, the queue itself is the right place to wait. Sizes as in
# service.domain.placement: what a host did not report does not limit it.
_FITS = """EXISTS (SELECT 1 FROM hosts h WHERE h.state = 'up' AND r.environment = ANY(h.environments)
    AND (r.kit IS NULL OR r.kit = ANY(h.environments))
    AND (CASE WHEN p.untrusted
              THEN h.facts ? 'untrusted_runtimes' AND jsonb_array_length(h.facts -> 'untrusted_runtimes') > 0
                   AND (r.runtime IS NULL OR h.facts -> 'untrusted_runtimes' ? r.runtime)
              ELSE r.runtime IS NULL OR r.runtime = ANY(h.runtimes) END)
    AND coalesce((r.limits ->> 'memory_bytes')::bigint <= (h.facts ->> 'memory_usable_bytes')::bigint, true)
    AND coalesce((r.limits ->> 'disk_bytes')::bigint
                 <= (h.facts ->> 'disk_total_bytes')::bigint * coalesce((h.facts ->> 'disk_overcommit')::float8, 2), true))"""
_STUCK = text(f"""
    SELECT r.id, r.environment, r.kit, r.runtime, r.limits, p.untrusted FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE r.phase = 'queued' AND r.queued_at < clock_timestamp() - make_interval(secs => :after_s) AND NOT {_FITS}
      AND EXISTS (SELECT 1 FROM hosts WHERE state = 'up')
    ORDER BY r.queued_at LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only
_FREED = text(f"""
    SELECT r.id FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE r.phase = 'held' AND r.hold ->> 'reason' IN ('{UNPLACEABLE}', '{TOO_LARGE}', '{Wait.IMAGE}') AND {_FITS}
    ORDER BY r.queued_at LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only

_CUT_OFF = text(f"""
    SELECT r.id, b.reason, b.manual, b.provider, b.opened_at, b.next_probe_at
    FROM runs r JOIN models m ON m.id = r.model_id
    JOIN breakers b ON b.model_id = m.id AND b.credential_id = coalesce(m.credential_id, '') AND b.state <> 'closed'
    WHERE r.phase = 'queued' AND r.replay_of IS NULL ORDER BY r.queued_at LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only
_OUTDATED = text(f"""
    SELECT r.id, b.reason, b.manual, b.provider, b.opened_at, b.next_probe_at
    FROM runs r JOIN models m ON m.id = r.model_id
    JOIN breakers b ON b.model_id = m.id AND b.credential_id = coalesce(m.credential_id, '') AND b.state = 'open'
    WHERE r.phase = 'held' AND r.hold ->> 'reason' = '{PROVIDER_UNAVAILABLE}'
      AND (r.hold ->> 'next_probe_at')::timestamptz IS DISTINCT FROM b.next_probe_at
    ORDER BY r.queued_at LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only
# Ramping: how many of a model's runs may come back grows with the time since its breaker closed. One that has no breaker
# (any more) is free at once.
_BACK = text(f"""
    SELECT id FROM (
        SELECT r.id, b.updated_at, row_number() OVER (
                   PARTITION BY r.model_id ORDER BY r.priority DESC, r.queued_at, r.id) AS place
        FROM runs r LEFT JOIN models m ON m.id = r.model_id
        LEFT JOIN breakers b ON b.model_id = m.id AND b.credential_id = coalesce(m.credential_id, '')
        WHERE r.phase = 'held' AND r.hold ->> 'reason' = '{PROVIDER_UNAVAILABLE}' AND NOT {UNREACHABLE}) AS free
    WHERE updated_at IS NULL
       OR place <= {_FIRST_BACK} * power(2, least(20, extract(epoch FROM clock_timestamp() - updated_at) / :doubles_s))
    ORDER BY place LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only


async def hold_unplaceable(tx: Tx, after_s: float) -> list[str]:
    """Hold runs that have waited ``after_s`` seconds and that no host which is up can ever take; return their ids."""
    held: list[str] = []
    stuck = (await tx.execute(_STUCK, {"after_s": after_s})).mappings().all()
    hosts = await capacity.of_all(tx) if stuck else []
    for row in stuck:
        run = await locked(tx, row["id"], Phase.QUEUED)
        if run is not None:
            await change_phase(tx, run, Phase.HELD, hold=await _reason(tx, row, hosts))
            held.append(row["id"])
    return held


async def release_placeable(tx: Tx) -> list[str]:
    """Queue again what a host can take now; return the ids."""
    return await queue_again(tx, (await tx.execute(_FREED)).scalars().all())


async def hold_cut_off(tx: Tx) -> list[str]:
    """Hold queued runs whose model's breaker is not closed; they consume no attempt. Return their ids.

    Those that are held already learn when the next probe is.
    """
    held: list[str] = []
    for row in (await tx.execute(_OUTDATED)).mappings().all():
        if await locked(tx, row["id"], Phase.HELD) is not None:
            await touch(tx, row["id"], hold=_outage(row))
    for row in (await tx.execute(_CUT_OFF)).mappings().all():
        run = await locked(tx, row["id"], Phase.QUEUED)
        if run is not None:
            await change_phase(tx, run, Phase.HELD, hold=_outage(row))
            held.append(row["id"])
    return held


async def release_cut_off(tx: Tx, *, doubles_every_s: float = _DOUBLES_EVERY_S) -> list[str]:
    """Queue again runs whose provider is back: a few at first, then twice as many every ``doubles_every_s`` seconds."""
    return await queue_again(tx, (await tx.execute(_BACK, {"doubles_s": doubles_every_s})).scalars().all())


def _outage(row: RowMapping) -> dict[str, Any]:
    why = row["reason"] or ("an operator has closed the way to it" if row["manual"] else "it fails")
    probe = row["next_probe_at"]
    return {
        "reason": PROVIDER_UNAVAILABLE,
        "detail": f"provider {row['provider']!r}: {why}",
        "since": row["opened_at"].isoformat(),
        "next_probe_at": None if probe is None else probe.isoformat(),
    }


async def queue_again(tx: Tx, run_ids: Sequence[str]) -> list[str]:
    """Queue those of the runs that are held still and that nobody else has locked, in this order; return their ids."""
    freed: list[str] = []
    for run_id in run_ids:
        run = await locked(tx, run_id, Phase.HELD)
        if run is not None:
            await change_phase(tx, run, Phase.QUEUED, hold=None)
            freed.append(run_id)
    return freed


async def locked(tx: Tx, run_id: str, phase: Phase) -> RowMapping | None:
    """Lock the run and return its row; null where it has another phase by now, or somebody else has it."""
    query = select(runs).where(runs.c.id == run_id, runs.c.phase == phase).with_for_update(skip_locked=True)
    return (await tx.execute(query)).mappings().one_or_none()


async def _reason(tx: Tx, stuck: RowMapping, hosts: list[Capacity]) -> dict[str, Any]:
    since = (await tx.execute(select(func.clock_timestamp()))).scalar_one().isoformat()
    need = capacity.need_of(stuck)
    size = too_large(hosts, need)
    if size is not None:
        return {"reason": TOO_LARGE, "detail": size, "since": since}
    missing, words = nowhere([h for h in hosts if h.state == "up"], need)
    if missing is Wait.IMAGE:
        return {"reason": missing.value, "detail": words, "since": since}
    what = f"environment {stuck['environment']!r}"
    if stuck["runtime"]:
        what += f" under runtime {stuck['runtime']!r}"
    if stuck["untrusted"]:
        what += " for an untrusted project"
    return {"reason": UNPLACEABLE, "detail": f"no host that is up offers {what}", "since": since}

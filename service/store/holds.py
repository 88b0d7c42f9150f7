"""Held, not burnt: runs that no host can take wait in phase ``held`` with a reason that a person can read."""

from typing import Any

from sqlalchemy import RowMapping, func, select, text

from service.domain.placement import Capacity, too_large
from service.domain.run_states import Phase
from service.store import capacity
from service.store.database import Tx
from service.store.phases import change_phase
from service.store.tables import runs

UNPLACEABLE = "no_host_offers_it"
TOO_LARGE = "no_host_large_enough"
_AT_ONCE = 200

# Only while some host is up: with none at all, the queue itself is the right place to wait. Sizes as in
# service.domain.placement: what a host did not report does not limit it.
_FITS = """EXISTS (SELECT 1 FROM hosts h WHERE h.state = 'up' AND r.environment = ANY(h.environments)
    AND (CASE WHEN p.untrusted
              THEN h.facts ? 'untrusted_runtimes' AND jsonb_array_length(h.facts -> 'untrusted_runtimes') > 0
                   AND (r.runtime IS NULL OR h.facts -> 'untrusted_runtimes' ? r.runtime)
              ELSE r.runtime IS NULL OR r.runtime = ANY(h.runtimes) END)
    AND coalesce((r.limits ->> 'memory_bytes')::bigint <= (h.facts ->> 'memory_usable_bytes')::bigint, true)
    AND coalesce((r.limits ->> 'disk_bytes')::bigint
                 <= (h.facts ->> 'disk_total_bytes')::bigint * coalesce((h.facts ->> 'disk_overcommit')::float8, 2), true))"""
_STUCK = text(f"""
    SELECT r.id, r.environment, r.runtime, r.limits, p.untrusted FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE r.phase = 'queued' AND r.queued_at < clock_timestamp() - make_interval(secs => :after_s) AND NOT {_FITS}
      AND EXISTS (SELECT 1 FROM hosts WHERE state = 'up')
    ORDER BY r.queued_at LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only
_FREED = text(f"""
    SELECT r.id FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE r.phase = 'held' AND r.hold ->> 'reason' IN ('{UNPLACEABLE}', '{TOO_LARGE}') AND {_FITS}
    ORDER BY r.queued_at LIMIT {_AT_ONCE}""")  # noqa: S608 - constants only


async def hold_unplaceable(tx: Tx, after_s: float) -> list[str]:
    """Hold runs that have waited ``after_s`` seconds and that no host which is up can ever take; return their ids."""
    held: list[str] = []
    stuck = (await tx.execute(_STUCK, {"after_s": after_s})).mappings().all()
    hosts = await capacity.of_all(tx) if stuck else []
    for row in stuck:
        run = await _locked(tx, row["id"], Phase.QUEUED)
        if run is not None:
            await change_phase(tx, run, Phase.HELD, hold=await _reason(tx, row, hosts))
            held.append(row["id"])
    return held


async def release_placeable(tx: Tx) -> list[str]:
    """Queue again what a host can take now; return the ids."""
    freed: list[str] = []
    for run_id in (await tx.execute(_FREED)).scalars().all():
        run = await _locked(tx, run_id, Phase.HELD)
        if run is not None:
            await change_phase(tx, run, Phase.QUEUED, hold=None)
            freed.append(run_id)
    return freed


async def _locked(tx: Tx, run_id: str, phase: Phase) -> RowMapping | None:
    query = select(runs).where(runs.c.id == run_id, runs.c.phase == phase).with_for_update(skip_locked=True)
    return (await tx.execute(query)).mappings().one_or_none()


async def _reason(tx: Tx, stuck: RowMapping, hosts: list[Capacity]) -> dict[str, Any]:
    since = (await tx.execute(select(func.clock_timestamp()))).scalar_one().isoformat()
    size = too_large(hosts, capacity.need_of(stuck))
    if size is not None:
        return {"reason": TOO_LARGE, "detail": size, "since": since}
    what = f"environment {stuck['environment']!r}"
    if stuck["runtime"]:
        what += f" under runtime {stuck['runtime']!r}"
    if stuck["untrusted"]:
        what += " for an untrusted project"
    return {"reason": UNPLACEABLE, "detail": f"no host that is up offers {what}", "since": since}

"""Which queued runs a host takes next: priority, then fair share between projects, then age (CONTRACTS 1)."""

from typing import Any

from sqlalchemy import func, select, text

from service.domain.events import EventType
from service.domain.run_states import AttemptState, Phase
from service.store.database import Tx
from service.store.phases import append_own, change_phase
from service.store.rows import AttemptRow, HostRow
from service.store.tables import attempts, fence_sequence, hosts, runs

_MARGIN = 20
_ROUNDS = 4
_LIVE = "('provisioning', 'running', 'paused', 'awaiting_confirmation', 'collecting')"

# A project's n-th candidate competes as if the project's live attempts and its n-1 better candidates were running,
# so one statement gives the same order as claiming one by one. `wanted` bounds the scan per project.
_CANDIDATES = text(f"""
    WITH live AS (SELECT project_id, count(*) AS n FROM runs WHERE phase IN {_LIVE} AND phase <> 'done' GROUP BY 1)
    SELECT c.id
    FROM projects p LEFT JOIN live ON live.project_id = p.id
    CROSS JOIN LATERAL (
        SELECT r.id, r.priority, r.queued_at,
               row_number() OVER (ORDER BY r.priority DESC, r.queued_at, r.id) AS place
        FROM runs r
        WHERE r.project_id = p.id AND r.phase = 'queued' AND r.stop_requested_at IS NULL
          AND r.environment = ANY(CAST(:environments AS text[]))
          AND coalesce(r.runtime, CASE WHEN p.untrusted THEN :safe_default ELSE :any_default END)
              = ANY(CASE WHEN p.untrusted THEN CAST(:safe AS text[]) ELSE CAST(:runtimes AS text[]) END)
        ORDER BY r.priority DESC, r.queued_at, r.id LIMIT :wanted) AS c
    ORDER BY c.priority DESC, coalesce(live.n, 0) + c.place, c.queued_at, c.id""")  # noqa: S608 - constants only
_LOCK = text("""
    SELECT r.*, p.untrusted FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE r.id = ANY(CAST(:ids AS text[])) AND r.phase = 'queued' AND r.stop_requested_at IS NULL
    ORDER BY array_position(CAST(:ids AS text[]), r.id) LIMIT :slots FOR UPDATE OF r SKIP LOCKED""")


async def claim(tx: Tx, host: HostRow, free_slots: int) -> list[AttemptRow]:
    """Take at most ``free_slots`` queued runs whose environment and runtime the host offers.

    Each gets a further attempt with a new fence and enters phase ``provisioning``. An untrusted project's runs go only
    to ``host.untrusted_runtimes``. Empty when the host is not ``up`` or another process has its epoch.
    """
    if free_slots < 1 or not await _may_claim(tx, host):
        return []
    return [await _make_attempt(tx, host, row) for row in await _lock_best(tx, host, free_slots)]


async def _may_claim(tx: Tx, host: HostRow) -> bool:
    query = select(hosts.c.state, hosts.c.epoch).where(hosts.c.id == host.id).with_for_update(read=True)
    row = (await tx.execute(query)).one_or_none()
    return row is not None and row.state == "up" and row.epoch == host.epoch


async def _lock_best(tx: Tx, host: HostRow, free_slots: int) -> list[Any]:
    """Lock the best candidates; where other hosts hold them, look further down the queue."""
    safe = host.untrusted_runtimes
    offer = {
        "environments": list(host.environments),
        "runtimes": list(host.runtimes),
        "safe": list(safe),
        "any_default": next(iter(host.runtimes), None),
        "safe_default": next(iter(safe), None),
    }
    wanted = free_slots + _MARGIN
    locked: list[Any] = []
    for _ in range(_ROUNDS):
        ids = list((await tx.execute(_CANDIDATES, {**offer, "wanted": wanted})).scalars())
        locked = list((await tx.execute(_LOCK, {"ids": ids, "slots": free_slots})).mappings())
        if len(locked) == free_slots or len(ids) < wanted:
            break
        wanted *= 4
    return locked


async def _make_attempt(tx: Tx, host: HostRow, run: Any) -> AttemptRow:
    offered = host.untrusted_runtimes if run["untrusted"] else host.runtimes
    values = {
        "run_id": run["id"],
        "n": run["attempt"] + 1,
        "state": AttemptState.CLAIMED,
        "fence": fence_sequence.next_value(),
        "host_id": host.id,
        "runtime": run["runtime"] or offered[0],
    }
    attempt = (await tx.execute(attempts.insert().values(values).returning(attempts))).mappings().one()
    waited = func.greatest(0, func.extract("epoch", func.clock_timestamp() - runs.c.queued_at))
    cleared = dict.fromkeys(
        ("started_at", "deadline_at", "ended_at", "ended_because", "provision_s", "wall_s", "doing")
    )
    changed = await change_phase(tx, run, Phase.PROVISIONING, attempt=attempt["n"], queue_s=waited, **cleared)
    payload = {"attempt": attempt["n"], "host": host.id, "sandbox": None, "runtime": values["runtime"]}
    await append_own(tx, changed, EventType.ATTEMPT_STARTED, payload)
    return AttemptRow.of(attempt)

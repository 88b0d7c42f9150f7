"""How much room hosts have: what they reported, less what live attempts were promised."""

from typing import Any

from sqlalchemy import RowMapping, text

from service.domain.placement import Capacity, Need
from service.store.database import Tx

MOST_HOSTS = 500

# A sandbox's memory is free once its container is dead (`ended`), its disk once it is destroyed.
_SELECT = f"""
    SELECT h.id, h.state, h.cordoned, h.slots, h.slots_limit, h.runtimes, h.environments, h.facts,
           coalesce(l.running, 0) AS running, coalesce(l.memory, 0) AS memory, coalesce(l.disk, 0) AS disk
    FROM hosts h LEFT JOIN LATERAL (
        SELECT count(*) AS running, sum((r.limits ->> 'disk_bytes')::bigint) AS disk,
               sum((r.limits ->> 'memory_bytes')::bigint)
                   FILTER (WHERE a.state IN ('claimed', 'bound', 'running')) AS memory
        FROM attempts a JOIN runs r ON r.id = a.run_id
        WHERE a.host_id = h.id AND a.state NOT IN ('released', 'lost')) AS l ON true
    WHERE CAST(:host_id AS text) IS NULL OR h.id = :host_id
    ORDER BY h.id LIMIT {MOST_HOSTS}"""  # noqa: S608 - constants only


async def of_host(tx: Tx, host_id: str) -> Capacity | None:
    row = (await tx.execute(text(_SELECT), {"host_id": host_id})).mappings().one_or_none()
    return None if row is None else _capacity(row)


async def of_all(tx: Tx) -> list[Capacity]:
    """Return every host, at most 500, by id."""
    rows = await tx.execute(text(_SELECT), {"host_id": None})
    return [_capacity(row) for row in rows.mappings()]


def need_of(run: RowMapping) -> Need:
    """Return what a run's row (with its project's ``untrusted``) asks of a host."""
    return Need(
        environment=run["environment"],
        memory_bytes=int(run["limits"]["memory_bytes"]),
        disk_bytes=int(run["limits"]["disk_bytes"]),
        runtime=run["runtime"],
        untrusted=run["untrusted"],
        kit=run["kit"],
    )


def _capacity(row: RowMapping) -> Capacity:
    facts: dict[str, Any] = row["facts"]
    allowed = facts.get("untrusted_runtimes") or ()
    return Capacity(
        host_id=row["id"],
        state=row["state"],
        cordoned=row["cordoned"],
        slots=row["slots"],
        slots_limit=row["slots_limit"],
        runtimes=tuple(row["runtimes"]),
        environments=tuple(row["environments"]),
        untrusted_runtimes=tuple(r for r in row["runtimes"] if r in allowed),
        running=row["running"],
        memory_usable_bytes=facts.get("memory_usable_bytes"),
        memory_promised_bytes=int(row["memory"]),
        disk_free_bytes=facts.get("disk_free_bytes"),
        disk_total_bytes=facts.get("disk_total_bytes"),
        disk_watermark_bytes=facts.get("disk_watermark_bytes") or 0,
        disk_overcommit=facts.get("disk_overcommit") or 2.0,
        disk_promised_bytes=int(row["disk"]),
    )

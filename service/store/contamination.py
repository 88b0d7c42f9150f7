"""What scans for contamination found, and what they need to know of a run's task and agent.

Use it as ``from service.store import contamination``.
"""

from typing import Any, cast

from sqlalchemy import func, select

from service.domain.cleaning import clean_json
from service.domain.events import EventType, NewEvent
from service.store import clock, events
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.rows_scans import ScanRow
from service.store.tables import agents, scaffolds
from service.store.tables_benchmarks import benchmark_items, benchmarks
from service.store.tables_evaluations import contamination_scans as scans


async def scaffold_kind(tx: Tx, agent_id: str) -> str:
    kind = scaffolds.c.manifest["kind"].astext
    query = select(kind).join(agents, agents.c.scaffold_id == scaffolds.c.id).where(agents.c.id == agent_id)
    return (await tx.execute(query)).scalar_one()


async def canaries_of(tx: Tx, project_id: str, task_id: str) -> list[str]:
    """Return the canaries of all benchmarks of the project that the task is an item of."""
    return await _heads(tx, project_id, task_id, "canaries")


async def deny_lists_of(tx: Tx, project_id: str, task_id: str) -> list[str]:
    """Return the hosts that any of those benchmarks names as publishing its answers."""
    return await _heads(tx, project_id, task_id, "deny_list")


async def _heads(tx: Tx, project_id: str, task_id: str, member: str) -> list[str]:
    items = select(benchmark_items.c.benchmark_id).where(benchmark_items.c.task_id == task_id)
    query = select(benchmarks.c.manifest[member]).where(
        benchmarks.c.project_id == project_id, benchmarks.c.id.in_(items)
    )
    lists = (await tx.execute(query)).scalars()
    return list(dict.fromkeys(str(one) for found in lists for one in cast("list[Any]", found or [])))


async def get(tx: Tx, run_id: str) -> ScanRow | None:
    """Return a finished scan; null while there is none."""
    query = select(scans).where(scans.c.run_id == run_id, scans.c.version.is_not(None))
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ScanRow.of(row)


async def keep(tx: Tx, run_id: str, version: int, values: dict[str, Any]) -> bool:
    """Write what was found into the claimed row; False if it is gone with its run."""
    values = {**values, "hits": clean_json(values["hits"]), "version": version, "scanned_at": func.clock_timestamp()}
    query = scans.update().where(scans.c.run_id == run_id).values(values).returning(scans.c.run_id)
    return (await tx.execute(query)).first() is not None


async def tell(tx: Tx, run_id: str, type_: EventType, payload: dict[str, Any], version: int) -> None:
    """Append the event, once per version of what looks."""
    run = await lock_run(tx, run_id)
    event = NewEvent(type_, payload, f"contamination:{version}", 0, await clock.now(tx))
    await events.append(tx, run_id, run["attempt"], None, [event])

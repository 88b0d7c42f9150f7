"""What an evaluation can be of: the items of a benchmark, or single tasks, and what their benchmarks forbid."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, cast

from sqlalchemy import RowMapping, Select, select

from service.domain.benchmarks import ItemStatus
from service.domain.evaluation_plans import Item
from service.store.database import Tx
from service.store.rows import BenchmarkRow
from service.store.tables import tasks
from service.store.tables_benchmarks import benchmark_items, benchmarks


async def benchmark_meant(tx: Tx, project_id: str, reference: str) -> BenchmarkRow | None:
    """Return the project's benchmark of this id, ``name@version``, or name: then the one that was made last."""
    c = benchmarks.c
    name, _, version = reference.partition("@")
    named = (c.name == name) & (c.version == version) if version else c.name == name
    query = select(benchmarks).where(c.project_id == project_id, (c.id == reference) | named)
    by_id_first = (c.id != reference, c.created_at.desc(), c.id.desc())
    row = (await tx.execute(query.order_by(*by_id_first).limit(1))).mappings().one_or_none()
    return None if row is None else BenchmarkRow.of(row)


async def of_benchmark(tx: Tx, benchmark_id: str) -> list[Item]:
    """Return the items that have a task, in the benchmark's order. The caller checked the project."""
    query = (
        _tasks()
        .add_columns(benchmark_items.c.key, benchmark_items.c.status, benchmark_items.c.checked["state"].astext.label("check"))
        .join(benchmark_items, benchmark_items.c.task_id == tasks.c.id)
        .where(benchmark_items.c.benchmark_id == benchmark_id)
        .order_by(benchmark_items.c.position)
    )  # fmt: skip
    rows = (await tx.execute(query)).mappings()
    return [_item(row, row["key"], ItemStatus(row["status"]), row["check"]) for row in rows]


async def of_tasks(tx: Tx, project_id: str, task_ids: Sequence[str]) -> list[Item]:
    """Return the project's tasks among these, in their order; each is its own key."""
    query = _tasks().where(tasks.c.project_id == project_id, tasks.c.id.in_(task_ids))
    found = {row["id"]: row for row in (await tx.execute(query)).mappings()}
    return [_item(found[one], one, ItemStatus.OK, None) for one in dict.fromkeys(task_ids) if one in found]


async def deny_lists(tx: Tx, project_id: str, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return, of each task, the hosts that the project's benchmarks with it name as publishing its answers."""
    query = (
        select(benchmark_items.c.task_id, benchmark_items.c.benchmark_id)
        .join(benchmarks, benchmarks.c.id == benchmark_items.c.benchmark_id)
        .where(benchmarks.c.project_id == project_id, benchmark_items.c.task_id.in_(list(task_ids)))
        .order_by(benchmark_items.c.benchmark_id)
    )
    of: dict[str, list[str]] = defaultdict(list)
    for row in await tx.execute(query):
        of[row.task_id].append(row.benchmark_id)
    hosts = await _denied(tx, {one for ids in of.values() for one in ids})
    return {one: tuple(dict.fromkeys(host for i in of.get(one, []) for host in hosts[i])) for one in task_ids}


async def _denied(tx: Tx, benchmark_ids: Collection[str]) -> dict[str, list[str]]:
    query = select(benchmarks.c.id, benchmarks.c.manifest["deny_list"].label("hosts"))
    rows = await tx.execute(query.where(benchmarks.c.id.in_(benchmark_ids)))
    return {row.id: cast("list[str]", row.hosts or []) for row in rows}


def _tasks() -> Select[Any, Any, Any, Any]:
    return select(tasks.c.id, tasks.c.name, tasks.c.digest, tasks.c.manifest["facets"].label("facets"))


def _item(row: RowMapping, key: str, status: ItemStatus, check: str | None) -> Item:
    return Item(row["id"], key, row["name"], row["digest"], status, row["facets"] or {}, check)

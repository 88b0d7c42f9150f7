"""Benchmarks: named, versioned lists of items. Their content never changes; labels and what a check found may."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, bindparam, exists, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB, insert

from service.domain.benchmarks import BenchmarkHead, BenchmarkItem
from service.domain.cleaning import clean_json
from service.domain.errors import Conflict, Invalid
from service.domain.ids import new_id
from service.domain.run_states import Phase
from service.store.catalogue import storable
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort, fetch_page
from service.store.rows import BenchmarkItemRow, BenchmarkRow, Page, Slice
from service.store.run_filters import facet_holds
from service.store.tables import runs, tasks
from service.store.tables_benchmarks import benchmark_items, benchmarks

Counted = tuple[BenchmarkRow, dict[str, int]]
LISTING = Listing(
    benchmarks,
    BenchmarkRow.of,
    sorts_by(created_at=Sort(benchmarks.c.created_at), name=Sort(benchmarks.c.name, str)),
    {"name": one_of(benchmarks.c.name), "version": one_of(benchmarks.c.version)},
    version=benchmarks.c.revision,
    labels=benchmarks.c.labels,
)
_BY_POSITION = Sort(benchmark_items.c.position, int)
_GLOB = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\", "*": "%", "?": "_"})


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Every field that is set must hold."""

    statuses: Collection[str] = ()
    key: str | None = None
    """Pattern with ``*`` and ``?``."""
    facets: Mapping[str, str] | None = None
    check: str | None = None
    """State that a check found: ok | suspect | broken."""


async def find(tx: Tx, project_id: str, name: str, version: str) -> BenchmarkRow | None:
    """Return the project's benchmark of this name and version."""
    mine = (benchmarks.c.project_id == project_id, benchmarks.c.name == name, benchmarks.c.version == version)
    row = (await tx.execute(select(benchmarks).where(*mine))).mappings().one_or_none()
    return None if row is None else BenchmarkRow.of(row)


async def insert_whole(
    tx: Tx,
    project_id: str,
    head: BenchmarkHead,
    digest: str,
    facets: Mapping[str, Any],
    items: Sequence[tuple[BenchmarkItem, str | None]],
) -> tuple[BenchmarkRow, bool]:
    """Insert a benchmark and its items (with their tasks' ids), or find the one that is the same; tell whether it is new.

    Raises Conflict("benchmark_version_taken") when name and version are those of another content.
    """
    benchmark_id = new_id("bench")
    values = _values(benchmark_id, project_id, head, digest, facets)
    row = await _made(tx, values)
    if row is None:
        found = await find(tx, project_id, head.name, head.version)
        return same_or_taken(found, head, digest), False
    await tx.execute(benchmark_items.insert(), [_item(benchmark_id, n, *pair) for n, pair in enumerate(items)])
    return row, True


async def insert_derived(
    tx: Tx,
    parent: BenchmarkRow,
    head: BenchmarkHead,
    digest: str,
    facets: Mapping[str, Any],
    keys: Sequence[str],
    derived: Mapping[str, Any],
) -> tuple[BenchmarkRow, bool]:
    """Insert a benchmark of these items of its parent, as they are there; otherwise as :func:`insert_whole`."""
    benchmark_id = new_id("bench")
    values = _values(benchmark_id, parent.project_id, head, digest, facets)
    row = await _made(tx, values | {"derived": clean_json(dict(derived))})
    if row is None:
        found = await find(tx, parent.project_id, head.name, head.version)
        return same_or_taken(found, head, digest), False
    c = benchmark_items.c
    same = ("key", "task_id", "status", "problems", "checked")
    place = func.row_number().over(order_by=c.position) - 1
    taken = select(literal(benchmark_id), place, *(c[name] for name in same))
    taken = taken.where(c.benchmark_id == parent.id, c.key.in_(keys))
    await tx.execute(benchmark_items.insert().from_select(["benchmark_id", "position", *same], taken))
    return row, True


def _values(
    benchmark_id: str, project_id: str, head: BenchmarkHead, digest: str, facets: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "id": benchmark_id,
        "project_id": project_id,
        "name": head.name,
        "version": head.version,
        "digest": digest,
        "manifest": storable(head),
        "facets": clean_json(facets),
        "labels": head.labels,
    }


async def _made(tx: Tx, values: Mapping[str, Any]) -> BenchmarkRow | None:
    """Return the new row; null where name and version are taken."""
    query = insert(benchmarks).values(dict(values)).on_conflict_do_nothing().returning(benchmarks)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else BenchmarkRow.of(row)


def same_or_taken(found: BenchmarkRow | None, head: BenchmarkHead, digest: str) -> BenchmarkRow:
    """Return ``found`` if it has this content. Raises Conflict("benchmark_version_taken")."""
    if found is None or found.digest != digest:
        detail = f"{head.name}@{head.version} exists with another content: give this one another version"
        raise Conflict("benchmark_version_taken", detail, benchmark_id=None if found is None else found.id)
    return found


def _item(benchmark_id: str, position: int, item: BenchmarkItem, task_id: str | None) -> dict[str, Any]:
    return {
        "benchmark_id": benchmark_id,
        "position": position,
        "key": item.key,
        "task_id": task_id,
        "status": item.status,
        "problems": clean_json([p.model_dump(mode="json") for p in item.problems]),
    }


async def get(tx: Tx, project_id: str, benchmark_id: str, *, lock: bool = False) -> BenchmarkRow | None:
    """Return the project's benchmark; null if there is none (or it is another project's)."""
    query = select(benchmarks).where(benchmarks.c.id == benchmark_id, benchmarks.c.project_id == project_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    return None if row is None else BenchmarkRow.of(row)


async def with_counts(tx: Tx, found: Slice[BenchmarkRow]) -> Slice[Counted]:
    """Return a page of :data:`LISTING` with what :func:`counts` says of each."""
    of = await counts(tx, [row.id for row in found.items])
    return Slice([(row, of[row.id]) for row in found.items], found.next)


async def counts(tx: Tx, benchmark_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the number of items of each status, and of each state that a check found (as ``check.<state>``)."""
    check = func.coalesce(benchmark_items.c.checked["state"].astext, "none")
    columns = (benchmark_items.c.benchmark_id, benchmark_items.c.status, check.label("check"))
    query = select(*columns, func.count().label("n")).where(benchmark_items.c.benchmark_id.in_(benchmark_ids))
    found: dict[str, dict[str, int]] = {one: {} for one in benchmark_ids}
    for row in await tx.execute(query.group_by(*columns)):
        mine = found[row.benchmark_id]
        mine[row.status] = mine.get(row.status, 0) + row.n
        if row.check != "none":
            mine[f"check.{row.check}"] = mine.get(f"check.{row.check}", 0) + row.n
    return found


async def list_items(tx: Tx, benchmark_id: str, page: Page, where: ItemFilter) -> Slice[BenchmarkItemRow]:
    """Return a page in the benchmark's own order. The caller checked the project."""
    query = select(
        benchmark_items, tasks.c.name.label("task_name"), tasks.c.digest.label("task_digest")
    ).outerjoin(tasks, tasks.c.id == benchmark_items.c.task_id)  # fmt: skip
    query = query.where(benchmark_items.c.benchmark_id == benchmark_id, *_conditions(where))
    rows, following = await fetch_page(tx, query, _BY_POSITION, benchmark_items.c.key, page)
    return Slice([BenchmarkItemRow.of(row) for row in rows], following)


def _conditions(where: ItemFilter) -> Sequence[ColumnElement[bool]]:
    found: tuple[ColumnElement[bool], ...] = ()
    if where.statuses:
        found += (benchmark_items.c.status.in_(where.statuses),)
    if where.key is not None:
        found += (benchmark_items.c.key.like(where.key.translate(_GLOB)),)
    if where.check is not None:
        found += (benchmark_items.c.checked["state"].astext == where.check,)
    return found + tuple(facet_holds(name, value) for name, value in (where.facets or {}).items())


async def set_labels(tx: Tx, benchmark_id: str, labels: Mapping[str, str]) -> None:
    """Replace the labels. The caller checked the project."""
    await _touch(tx, benchmark_id, labels=dict(labels))


async def set_checks(tx: Tx, benchmark_id: str, checks: Mapping[str, dict[str, Any]]) -> None:
    """Keep what a check found of each item (by key); others keep what they have. The caller checked the project.

    Raises Invalid("unknown_items", keys=[…]); then nothing is written.
    """
    mine = benchmark_items.c.benchmark_id == benchmark_id
    query = select(benchmark_items.c.key).where(mine, benchmark_items.c.key.in_(checks))
    unknown = sorted(set(checks) - set((await tx.execute(query)).scalars()))
    if unknown:
        raise Invalid("unknown_items", f"{len(unknown)} keys are not items of this benchmark", keys=unknown[:100])
    write = benchmark_items.update().where(mine, benchmark_items.c.key == bindparam("item_key"))
    rows = [{"item_key": key, "found": clean_json(found)} for key, found in checks.items()]
    await tx.execute(write.values(checked=bindparam("found", type_=JSONB)), rows)
    await _touch(tx, benchmark_id)


async def is_in_use(tx: Tx, benchmark_id: str) -> bool:
    """Tell whether a run that is not done works on a task of the benchmark."""
    of_it = select(benchmark_items.c.task_id).where(benchmark_items.c.benchmark_id == benchmark_id)
    query = select(exists().where(runs.c.task_id.in_(of_it), runs.c.phase != Phase.DONE))
    return bool((await tx.execute(query)).scalar_one())


async def delete(tx: Tx, benchmark_id: str) -> None:
    """Forget the benchmark and its items; its tasks, and runs of them, stay. The caller checked the project."""
    await tx.execute(benchmarks.delete().where(benchmarks.c.id == benchmark_id))


async def _touch(tx: Tx, benchmark_id: str, **columns: Any) -> None:
    query = benchmarks.update().where(benchmarks.c.id == benchmark_id)
    await tx.execute(query.values(**columns, updated_at=func.clock_timestamp()))

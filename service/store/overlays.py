"""Facets of tasks that annotations add: an accepted set's values, named ``name@version`` wherever a facet is named."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, cast, exists, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import JSONB

from service.domain.annotations import overlays_of
from service.domain.benchmarks import MAX_FACET_VALUES, facet_values
from service.domain.errors import NotFound
from service.domain.evaluation_plans import Item
from service.domain.tasks import Facet
from service.store.database import Tx
from service.store.tables import tasks
from service.store.tables_annotations import annotation_sets, annotation_values
from service.store.tables_benchmarks import benchmark_items

MOST_SHOWN = 100
"""Overlays on one card; the newest."""


@dataclass(frozen=True, slots=True)
class Overlay:
    name: str
    """``name@version``"""
    set_id: str
    digest: str
    """Of its values."""

    def described(self) -> dict[str, str]:
        """Return what is kept of one that something was made with."""
        return {"name": self.name, "id": self.set_id, "digest": self.digest}


def facet_of(name: str) -> ColumnElement[Any]:
    """Return a facet of the statement's ``tasks``: of annotations where it is named so, else the task's own."""
    own = tasks.c.manifest["facets"][name]
    if not overlays_of([name]):
        return own
    s, v = annotation_sets.c, annotation_values.c
    label, _, version = name.partition("@")
    found = (
        select(v.value)
        .join(annotation_sets, s.id == v.set_id)
        .where(v.task_id == tasks.c.id, s.name == label, s.version == int(version), s.accepted_at.is_not(None))
        .where(s.project_id == tasks.c.project_id)
        .correlate(tasks)
        .scalar_subquery()
    )
    return func.coalesce(found, own)


async def named(tx: Tx, project_id: str, names: Sequence[str]) -> list[Overlay]:
    """Return the project's accepted sets of these names. Raises NotFound ``overlay_not_found``."""
    if not names:
        return []
    c = annotation_sets.c
    pairs = [(label, int(version)) for label, _, version in (name.partition("@") for name in names)]
    query = select(c.id, c.digest, c.name, c.version).where(
        c.project_id == project_id, tuple_(c.name, c.version).in_(pairs), c.accepted_at.is_not(None)
    )
    rows = await tx.execute(query)
    found = {f"{row.name}@{row.version}": (row.id, row.digest) for row in rows}
    for name in names:
        if name not in found:
            raise NotFound("overlay_not_found", f"no accepted annotations are called {name}", overlay=name)
    return [Overlay(name, *found[name]) for name in names]


async def laid_over(tx: Tx, items: Sequence[Item], overlays: Sequence[Overlay]) -> list[Item]:
    """Return the items with these facets as well; where a set says nothing of a task, it has none. The caller checked the
    project of all."""
    if not overlays:
        return [*items]
    v, names = annotation_values.c, {one.set_id: one.name for one in overlays}
    query = select(v.task_id, v.set_id, v.value).where(v.set_id.in_(names), v.value.is_not(None))
    added: dict[str, dict[str, Facet]] = {}
    for row in await tx.execute(query):
        added.setdefault(row.task_id, {})[names[row.set_id]] = row.value
    return [replace(one, facets={**one.facets, **added.get(one.task_id, {})}) for one in items]


def facets_with(names: Sequence[str]) -> ColumnElement[Any]:
    """Return all facets of the statement's ``tasks``, with these of annotations; what is null of these is left out."""
    own = func.coalesce(tasks.c.manifest["facets"], cast(literal("{}"), JSONB))
    for name in names:
        own = own.op("||")(func.jsonb_strip_nulls(func.jsonb_build_object(name, facet_of(name))))
    return own


async def of_benchmark(tx: Tx, project_id: str, benchmark_id: str) -> dict[str, dict[str, Any]]:
    """Return, of each overlay that says something of the benchmark's tasks: {id, digest, tasks, distinct, values}."""
    s, v = annotation_sets.c, annotation_values.c
    of_it = select(benchmark_items.c.task_id).where(benchmark_items.c.benchmark_id == benchmark_id)
    mine = (s.project_id == project_id, s.accepted_at.is_not(None))
    some = exists().where(v.set_id == s.id, v.task_id.in_(of_it), v.value.is_not(None))
    query = select(s.id, s.name, s.version, s.digest).where(*mine, some).order_by(s.accepted_at.desc(), s.id)
    sets = (await tx.execute(query.limit(MOST_SHOWN))).all()
    counts: dict[str, Counter[str]] = {row.id: Counter() for row in sets}
    having: Counter[str] = Counter()
    query = select(v.set_id, v.value).where(v.set_id.in_(counts), v.task_id.in_(of_it), v.value.is_not(None))
    for row in await tx.execute(query):
        having[row.set_id] += 1
        counts[row.set_id].update(facet_values(row.value))
    return {
        f"{row.name}@{row.version}": {
            "id": row.id, "digest": row.digest, "tasks": having[row.id], "distinct": len(counts[row.id]),
            "values": dict(counts[row.id].most_common(MAX_FACET_VALUES)),
        }
        for row in sets
    }  # fmt: skip

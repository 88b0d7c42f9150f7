"""Annotation sets: each (target, annotator, vote) of a set once, counted with the set, and the values that follow from them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select, update

from service.domain.annotation_votes import Settled, settle
from service.domain.annotations import PERSON, Annotation, AnnotationState
from service.domain.cleaning import clean_json
from service.domain.ids import new_id
from service.domain.tasks import Facet
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.many_rows import arrays_of, insert_of_many
from service.store.paging import Sort, fetch_page
from service.store.rows import Page, Slice
from service.store.rows_annotations import AnnotationRow, AnnotationSetRow, AnnotationValueRow
from service.store.surveys import Surveys
from service.store.tables import runs
from service.store.tables_annotations import annotation_sets, annotation_targets, annotation_values, annotations

OWNER = "annotation_set"
"""Kind of the owner of the blobs that annotations name."""
Key = tuple[str, str, int]
"""Target, annotator, vote."""
SETS = Surveys(annotation_sets, AnnotationSetRow.of)
LISTING = Listing(
    annotation_sets,
    AnnotationSetRow.of,
    sorts_by(created_at=Sort(annotation_sets.c.created_at), name=Sort(annotation_sets.c.name, str)),
    {name: one_of(annotation_sets.c[name]) for name in ("name", "state", "benchmark_id", "about")},
    version=annotation_sets.c.revision,
    labels=annotation_sets.c.labels,
)
ROWS = Listing(
    annotations,
    AnnotationRow.of,
    sorts_by(created_at=Sort(annotations.c.created_at)),
    {name: one_of(annotations.c[name]) for name in ("set_id", "target", "annotator", "state")},
)
_TARGETS = ("set_id", "position", "target", "task_id", "item_key", "text_sha256")
_ADD_TARGETS = insert_of_many(annotation_targets, _TARGETS)
_SAME = (
    "target", "annotator", "n", "reason", "model", "reported_model", "author", "asks", "cause", "rendered_sha256",
    "cost_usd",
)  # fmt: skip
_COLUMNS = ("id", "project_id", "set_id", "state", "value", "usage", *_SAME)
_ADD = insert_of_many(annotations, _COLUMNS, tail="ON CONFLICT (set_id, target, annotator, n) DO NOTHING RETURNING id")
_VALUES = ("set_id", "target", "task_id", "value", "votes", "agreeing", "tied", "by_person")
_ADD_VALUES = insert_of_many(annotation_values, _VALUES)


@dataclass(frozen=True, slots=True)
class SetTarget:
    target: str
    task_id: str | None = None
    item_key: str | None = None
    text_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class NewAnnotation:
    set_id: str
    project_id: str
    annotation: Annotation
    blobs: dict[str, int] = field(default_factory=dict[str, int])
    """Digest → bytes of what it names."""


@dataclass(frozen=True, slots=True)
class Said:
    """Everything that was answered of one target."""

    votes: list[Facet]
    """Of models."""
    person: Facet | None
    """The newest."""


async def create(
    tx: Tx, project_id: str, values: dict[str, Any], targets: Sequence[SetTarget], blobs: Mapping[str, int]
) -> AnnotationSetRow:
    """Insert a draft as the next version of its name. ``blobs``: digest → bytes of template and texts, durable already."""
    lock = f"annotations {project_id} {values['name']}"
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(lock, 0))))
    c = annotation_sets.c
    last = select(func.coalesce(func.max(c.version), 0)).where(c.project_id == project_id, c.name == values["name"])
    version = (await tx.execute(last)).scalar_one() + 1
    set_id = new_id("ans")
    row = {"id": set_id, "project_id": project_id, "version": version, **clean_json(values)}
    query = annotation_sets.insert().values(row).returning(annotation_sets)
    made = (await tx.execute(query)).mappings().one()
    places = [
        {"set_id": set_id, "position": n, **{name: getattr(one, name) for name in _TARGETS[2:]}}
        for n, one in enumerate(targets)
    ]
    await tx.execute(_ADD_TARGETS, arrays_of(annotation_targets, _TARGETS, places))
    await add_refs(tx, project_id, OWNER, set_id, blobs.items())
    return AnnotationSetRow.of(made)


async def runs_there(tx: Tx, project_id: str, run_ids: Collection[str]) -> set[str]:
    """Return those that are runs of the project."""
    c = runs.c
    query = select(c.id).where(c.project_id == project_id, c.id.in_(list(run_ids)))
    return {*(await tx.execute(query)).scalars()}


async def targets_of(tx: Tx, set_id: str) -> list[SetTarget]:
    """Return the set's targets in their order. The caller checked the project."""
    c = annotation_targets.c
    columns = [c[name] for name in _TARGETS[2:]]
    rows = (await tx.execute(select(*columns).where(c.set_id == set_id).order_by(c.position))).mappings()
    return [SetTarget(**row) for row in rows]


async def count_targets(tx: Tx, set_id: str) -> tuple[int, int]:
    """Return how many targets there are, and how many of them have a value. The caller checked the project."""
    v = annotation_values.c
    targets = select(func.count()).where(annotation_targets.c.set_id == set_id)
    valued = select(func.count()).where(v.set_id == set_id, v.value.is_not(None))
    return (await tx.execute(targets)).scalar_one(), (await tx.execute(valued)).scalar_one()


async def keys(tx: Tx, set_id: str) -> set[Key]:
    """Return what is recorded. The caller checked the project."""
    c = annotations.c
    rows = await tx.execute(select(c.target, c.annotator, c.n).where(c.set_id == set_id))
    return {(row.target, row.annotator, row.n) for row in rows}


async def put(tx: Tx, new: Sequence[NewAnnotation]) -> list[bool]:
    """Record votes, count them with their sets and note the blobs they name; tell which of them are new.

    What is recorded already stays as it is.
    """
    rows = [_columns(one) for one in new]
    made = {row.id for row in await tx.execute(_ADD, arrays_of(annotations, _COLUMNS, rows))}
    fresh = [one for one, row in zip(new, rows, strict=True) if row["id"] in made]
    counts: dict[str, Counter[str]] = {}
    for one in sorted(fresh, key=lambda n: n.set_id):
        said = counts.setdefault(one.set_id, Counter())
        said[one.annotation.state] += 1
        said["brought"] += one.annotation.annotator == PERSON
        if one.blobs:
            await add_refs(tx, one.project_id, OWNER, one.set_id, one.blobs.items())
    for set_id, found in counts.items():
        await _count(tx, set_id, found)
    return [row["id"] in made for row in rows]


async def of_people(tx: Tx, set_id: str) -> dict[str, tuple[int, Facet | None, str | None]]:
    """Return, of each target that a person said something of: the last one's number, value and reason."""
    c = annotations.c
    query = select(c.target, c.n, c.value, c.reason).where(c.set_id == set_id, c.annotator == PERSON).order_by(c.n)
    return {row.target: (row.n, row.value, row.reason) for row in await tx.execute(query)}


async def forget_failed(tx: Tx, set_id: str) -> int:
    """Delete the failed votes, so that they are asked for again. The caller holds the set."""
    c = annotations.c
    gone = (
        await tx.execute(annotations.delete().where(c.set_id == set_id, c.state == AnnotationState.FAILED))
    ).rowcount
    await _count(tx, set_id, Counter({AnnotationState.FAILED: -gone}))
    return gone


async def said_of(tx: Tx, set_id: str) -> dict[str, Said]:
    """Return what was answered of each target; targets without an answer are left out."""
    c = annotations.c
    answered = (c.set_id == set_id, c.state == AnnotationState.ANSWERED)
    query = select(c.target, c.annotator, c.n, c.value).where(*answered).order_by(c.target, c.annotator, c.n)
    votes: dict[str, list[Facet]] = defaultdict(list)
    person: dict[str, Facet] = {}
    for row in await tx.execute(query):
        if row.annotator == PERSON:
            person[row.target] = row.value
        else:
            votes[row.target].append(row.value)
    return {one: Said(votes.get(one, []), person.get(one)) for one in sorted({*votes, *person})}


async def settle_all(tx: Tx, row: AnnotationSetRow) -> dict[str, Settled]:
    """Work the values out anew and keep them, one of each target. The caller holds the set, which is not accepted."""
    said = await said_of(tx, row.id)
    found: dict[str, Settled] = {}
    kept: list[dict[str, Any]] = []
    for one in await targets_of(tx, row.id):
        of = said.get(one.target, Said([], None))
        settled = found[one.target] = settle(row.spec.answer, of.votes, of.person)
        kept.append({
            "set_id": row.id, "target": one.target, "task_id": one.task_id, "value": settled.value,
            "votes": settled.votes, "agreeing": settled.agreeing, "tied": settled.tied, "by_person": settled.by_person,
        })  # fmt: skip
    await tx.execute(annotation_values.delete().where(annotation_values.c.set_id == row.id))
    await tx.execute(_ADD_VALUES, arrays_of(annotation_values, _VALUES, kept))
    return found


async def list_values(tx: Tx, set_id: str, page: Page, *, open_only: bool) -> Slice[AnnotationValueRow]:
    """Return a page of what the set says of its targets, in their order. The caller checked the project."""
    v, t = annotation_values.c, annotation_targets.c
    query = (
        select(annotation_values, t.item_key, t.position)
        .join(annotation_targets, (t.set_id == v.set_id) & (t.target == v.target))
        .where(v.set_id == set_id)
    )
    if open_only:
        query = query.where(v.value.is_(None))
    rows, following = await fetch_page(tx, query, Sort(t.position, int), v.target, page)
    return Slice([AnnotationValueRow.of(row) for row in rows], following)


async def _count(tx: Tx, set_id: str, found: Counter[str]) -> None:
    c = annotation_sets.c
    values = {c[name]: c[name] + number for name, number in found.items() if number}
    if values:
        await tx.execute(
            update(annotation_sets).where(c.id == set_id).values(values | {c.updated_at: func.clock_timestamp()})
        )


def _columns(new: NewAnnotation) -> dict[str, Any]:
    one = new.annotation
    return {
        "id": new_id("an"),
        "project_id": new.project_id,
        "set_id": new.set_id,
        "state": one.state.value,
        "usage": None if one.usage is None else one.usage.model_dump(mode="json"),
        **clean_json({name: getattr(one, name) for name in ("value", "reason")}),
        **{name: getattr(one, name) for name in _SAME if name != "reason"},
    }

"""What a grading decided on each criterion: one row each, in the method's order, counted from 0 without a gap."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import func, select

from service.domain.cleaning import clean_json, clean_str
from service.domain.errors import Invalid
from service.store.database import Tx
from service.store.many_rows import arrays_of, insert_of_many
from service.store.paging import MAX_LIMIT
from service.store.rows import CriterionRow, Slice
from service.store.tables import grading_criteria

INLINE = 100
"""Criteria that come with their grading; the rest is read page by page."""
_BATCH = 1000
_COLUMNS = ("grading_id", "position", "criterion", "passed", "score", "max_score", "cause", "reason", "detail")
_INSERT = insert_of_many(grading_criteria, _COLUMNS)
_OPEN = "WHERE EXISTS (SELECT 1 FROM gradings WHERE id = :grading AND state IN ('pending', 'grading'))"
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])
_KEEP = insert_of_many(
    grading_criteria, _COLUMNS, where=_OPEN, tail=f"ON CONFLICT (grading_id, position) DO UPDATE SET {_CHANGED}"
)


async def drop_all(tx: Tx, grading_ids: Sequence[str]) -> None:
    await tx.execute(grading_criteria.delete().where(grading_criteria.c.grading_id.in_(list(grading_ids))))


async def keep(tx: Tx, grading_id: str, start: int, criteria: Sequence[Mapping[str, Any]]) -> None:
    """Write criteria at the positions from ``start`` on while there is no verdict; what was there gives way.

    One statement for up to 1 000 of them; of a grading that has ended, or is no more, nothing is written.
    """
    for at in range(0, len(criteria), _BATCH):
        rows = [_values(grading_id, start + at + n, one) for n, one in enumerate(criteria[at : at + _BATCH])]
        await tx.execute(_KEEP, {"grading": grading_id, **arrays_of(grading_criteria, _COLUMNS, rows)})


async def replace_all(tx: Tx, grading_id: str, criteria: Iterable[Mapping[str, Any]]) -> None:
    """Write a verdict's criteria in the place of those that were kept, in the transaction that ends the grading."""
    await drop_all(tx, [grading_id])
    rows = (_values(grading_id, position, c) for position, c in enumerate(criteria))
    while batch := [*islice(rows, _BATCH)]:
        await tx.execute(_INSERT, arrays_of(grading_criteria, _COLUMNS, batch))


async def first(tx: Tx, grading_ids: Sequence[str]) -> dict[str, list[CriterionRow]]:
    """Return the first ``INLINE`` criteria of each grading that has any. The caller checked the project."""
    c = grading_criteria.c
    query = select(grading_criteria).where(c.grading_id.in_(grading_ids), c.position < INLINE)
    found: dict[str, list[CriterionRow]] = {}
    for row in (await tx.execute(query.order_by(c.grading_id, c.position))).mappings():
        found.setdefault(row["grading_id"], []).append(CriterionRow.of(row))
    return found


async def totals(tx: Tx, grading_ids: Sequence[str]) -> dict[str, int]:
    """Return how many criteria each grading has, if any. The caller checked the project."""
    c = grading_criteria.c
    query = select(c.grading_id, func.count()).where(c.grading_id.in_(grading_ids)).group_by(c.grading_id)
    return {row[0]: int(row[1]) for row in await tx.execute(query)}


async def page(
    tx: Tx, grading_id: str, start: int = 0, limit: int = 100, *, cause: str | None = None, passed: bool | None = None
) -> Slice[CriterionRow]:
    """Return criteria from position ``start`` on, in order. ``Slice.next`` is (the next position, grading id).

    The caller checked the project. Raises Invalid("invalid_limit").
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("invalid_limit", f"limit is 1 to {MAX_LIMIT}")
    c = grading_criteria.c
    wanted = [c.grading_id == grading_id, c.position >= start]
    if cause is not None:
        wanted.append(c.cause == cause)
    if passed is not None:
        wanted.append(c.passed.is_(passed))
    query = select(grading_criteria).where(*wanted).order_by(c.position).limit(limit + 1)
    found = [CriterionRow.of(row) for row in (await tx.execute(query)).mappings()]
    following = (str(found[limit].position), grading_id) if len(found) > limit else None
    return Slice(found[:limit], following)


def _values(grading_id: str, position: int, criterion: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "grading_id": grading_id,
        "position": position,
        "criterion": clean_str(str(criterion["id"]))[0],
        **{name: criterion.get(name) for name in ("passed", "score", "max_score", "cause")},
        "reason": clean_str(str(criterion.get("reason") or ""))[0] or None,
        "detail": clean_json(criterion.get("detail") or {}),
    }

"""What people say against verdicts: contests and overrides. The verdict itself is never changed; what is withdrawn stays."""

from collections.abc import Sequence

from sqlalchemy import BigInteger, case, cast, func, select

from service.domain.cleaning import clean_str
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import GradingRow
from service.store.rows_grading import ReviewRow
from service.store.tables_grading import verdict_reviews

CONTEST, OVERRIDE = "contest", "override"
LISTING = Listing(
    verdict_reviews,
    ReviewRow.of,
    sorts_by(created_at=Sort(verdict_reviews.c.created_at)),
    {name: one_of(verdict_reviews.c[name]) for name in ("run_id", "grading_id", "kind", "author")},
    version=cast(case((verdict_reviews.c.withdrawn_at.is_not(None), 1), else_=0), BigInteger),
)


async def add(
    tx: Tx,
    grading: GradingRow,
    kind: str,
    author: str,
    reason: str,
    score: float | None = None,
    max_score: float | None = None,
) -> ReviewRow:
    values = {
        "id": new_id("rvw"),
        "project_id": grading.project_id,
        "run_id": grading.run_id,
        "grading_id": grading.id,
        "kind": kind,
        "author": clean_str(author)[0],
        "reason": clean_str(reason)[0],
        "score": score,
        "max_score": max_score,
    }
    query = verdict_reviews.insert().values(values).returning(verdict_reviews)
    return ReviewRow.of((await tx.execute(query)).mappings().one())


async def get(tx: Tx, project_id: str, review_id: str) -> ReviewRow | None:
    """Return the project's review; null if there is none (or it is another project's)."""
    c = verdict_reviews.c
    row = (await tx.execute(select(verdict_reviews).where(c.id == review_id, c.project_id == project_id))).mappings()
    found = row.one_or_none()
    return None if found is None else ReviewRow.of(found)


async def withdraw(tx: Tx, review_id: str) -> ReviewRow:
    """Say that it does not stand any more; the first time counts."""
    c = verdict_reviews.c
    when = func.coalesce(c.withdrawn_at, func.clock_timestamp())
    query = verdict_reviews.update().where(c.id == review_id).values(withdrawn_at=when).returning(verdict_reviews)
    return ReviewRow.of((await tx.execute(query)).mappings().one())


async def standing(tx: Tx, grading_ids: Sequence[str]) -> list[ReviewRow]:
    """Return what was said of these gradings and not withdrawn, oldest first. The caller checked the project."""
    c = verdict_reviews.c
    query = select(verdict_reviews).where(c.grading_id.in_(list(grading_ids)), c.withdrawn_at.is_(None))
    return [ReviewRow.of(row) for row in (await tx.execute(query.order_by(c.created_at, c.id))).mappings()]


async def standing_overrides(tx: Tx, grading_ids: Sequence[str]) -> dict[str, ReviewRow]:
    """Return the newest override of each grading that has one."""
    return {row.grading_id: row for row in await standing(tx, grading_ids) if row.kind == OVERRIDE}

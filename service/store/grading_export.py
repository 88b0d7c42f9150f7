"""Gradings with what belongs to them as flat rows, piece by piece: for exports of any length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, Select, select, tuple_

from service.store.database import Tx
from service.store.grading_lists import LISTING
from service.store.listing import ListFilter
from service.store.rows import CriterionRow, Cursor, GradingRow, Page, Slice
from service.store.rows_grading import VoteRow
from service.store.tables import agents, grading_criteria, runs, tasks
from service.store.tables_grading import votes

PIECE = 500
"""Rows of one read."""


@dataclass(frozen=True, slots=True)
class Whose:
    """The run that a grading is of."""

    task: str
    agent: str
    sample: int


async def heads(tx: Tx, project_id: str, where: ListFilter, cursor: Cursor | None) -> Slice[GradingRow]:
    """Return the next gradings, oldest first."""
    return await LISTING.page(tx, project_id, where, "created_at", Page(cursor, PIECE))


async def whose(tx: Tx, run_ids: Sequence[str]) -> dict[str, Whose]:
    """Return names of the runs. The caller checked the project."""
    query = (
        select(runs.c.id, tasks.c.name, agents.c.label, runs.c.sample)
        .join(tasks, tasks.c.id == runs.c.task_id)
        .join(agents, agents.c.id == runs.c.agent_id)
        .where(runs.c.id.in_(set(run_ids)))
    )
    return {row.id: Whose(row.name, row.label, row.sample) for row in await tx.execute(query)}


async def criteria_after(tx: Tx, grading_ids: Sequence[str], after: tuple[str, int]) -> list[tuple[str, CriterionRow]]:
    """Return the next criteria of these gradings by (grading, position), each with its grading's id."""
    c = grading_criteria.c
    query = select(grading_criteria).where(c.grading_id.in_(grading_ids), tuple_(c.grading_id, c.position) > after)
    rows = await _read(tx, query.order_by(c.grading_id, c.position))
    return [(row["grading_id"], CriterionRow.of(row)) for row in rows]


async def votes_after(tx: Tx, grading_ids: Sequence[str], after: tuple[str, str, str, int]) -> list[VoteRow]:
    """Return the next votes of these gradings by (grading, judge, item, n)."""
    v = votes.c
    key = tuple_(v.grading_id, v.judge, v.item, v.n)
    query = select(votes).where(v.grading_id.in_(grading_ids), key > after)
    return [VoteRow.of(row) for row in await _read(tx, query.order_by(v.grading_id, v.judge, v.item, v.n))]


async def _read(tx: Tx, query: Select[Any]) -> Sequence[RowMapping]:
    return (await tx.execute(query.limit(PIECE))).mappings().all()

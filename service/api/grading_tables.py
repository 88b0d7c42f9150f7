"""Gradings as tables: one row per verdict, criterion or vote, read and written piece by piece."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal

from service.api.rendering import rfc3339, sha256_name
from service.api.table_text import csv_lines, json_lines
from service.store import grading_export, reviews
from service.store.database import Database
from service.store.grading_export import Whose
from service.store.listing import ListFilter
from service.store.rows import CriterionRow, Cursor, GradingRow
from service.store.rows_grading import ReviewRow, VoteRow

Table = Literal["verdicts", "criteria", "votes"]
Row = dict[str, Any]
_HEAD = ("grading_id", "run_id", "task", "agent", "sample", "plan", "method", "method_version", "round")
_VERDICT = ("primary", "vote", "state", "score", "max_score", "fraction", "cause", "override_score", "override_max_score",
            "override_author", "deliverable_digest", "regrade_id", "created_at", "graded_at")  # fmt: skip
_CRITERION = ("criterion", "passed", "score", "max_score", "cause", "reason")
_VOTE = ("judge", "item", "n", "state", "cause", "asks", "model", "template", "template_sha256", "rendered_sha256",
         "took_s", "usage", "content")  # fmt: skip
COLUMNS: Mapping[Table, Sequence[str]] = {
    "verdicts": (*_HEAD, *_VERDICT),
    "criteria": (*_HEAD, *_CRITERION),
    "votes": (*_HEAD, *_VOTE),
}


async def rows(
    db: Database, project_id: str, where: ListFilter, table: Table, *, hidden: bool
) -> AsyncGenerator[list[Row]]:
    """Yield the table's rows in pieces, oldest grading first. Without ``hidden``, what quotes criteria is left out."""
    cursor: Cursor | None = None
    while True:
        async with db.snapshot() as tx:
            page = await grading_export.heads(tx, project_id, where, cursor)
            names = await grading_export.whose(tx, [row.run_id for row in page.items])
            standing = await reviews.standing_overrides(tx, [row.id for row in page.items])
        heads = {row.id: _head(row, names[row.run_id]) for row in page.items if row.run_id in names}
        if table == "verdicts":
            yield [heads[g.id] | _verdict(g, standing.get(g.id)) for g in page.items if g.id in heads]
        elif table == "criteria":
            async for piece in _criteria(db, heads, hidden=hidden):
                yield piece
        else:
            async for piece in _votes(db, heads, hidden=hidden):
                yield piece
        cursor = page.next
        if cursor is None:
            return


async def _criteria(db: Database, heads: Mapping[str, Row], *, hidden: bool) -> AsyncGenerator[list[Row]]:
    after = ("", -1)
    while True:
        async with db.reading() as tx:
            found = await grading_export.criteria_after(tx, list(heads), after)
        yield [heads[grading_id] | _criterion(c, hidden) for grading_id, c in found]
        if len(found) < grading_export.PIECE:
            return
        after = (found[-1][0], found[-1][1].position)


async def _votes(db: Database, heads: Mapping[str, Row], *, hidden: bool) -> AsyncGenerator[list[Row]]:
    after = ("", "", "", 0)
    while True:
        async with db.reading() as tx:
            found = await grading_export.votes_after(tx, list(heads), after)
        yield [heads[v.grading_id] | _vote(v, hidden) for v in found]
        if len(found) < grading_export.PIECE:
            return
        last = found[-1]
        after = (last.grading_id, last.judge, last.item, last.n)


def _head(row: GradingRow, whose: Whose) -> Row:
    names = ("run_id", "plan", "method", "method_version", "round")
    head: Row = {"grading_id": row.id, "task": whose.task, "agent": whose.agent, "sample": whose.sample}
    head |= {name: getattr(row, name) for name in names}
    return {name: head[name] for name in _HEAD}


def _verdict(row: GradingRow, override: ReviewRow | None) -> Row:
    known = row.score is not None and row.max_score
    return {
        "primary": row.primary,
        "vote": row.vote,
        "state": str(row.state),
        "score": row.score,
        "max_score": row.max_score,
        "fraction": (row.score or 0.0) / row.max_score if known and row.max_score else None,
        "cause": row.cause,
        "override_score": override.score if override else None,
        "override_max_score": override.max_score if override else None,
        "override_author": override.author if override else None,
        "deliverable_digest": sha256_name(row.deliverable_digest),
        "regrade_id": row.regrade_id,
        "created_at": rfc3339(row.created_at),
        "graded_at": None if row.graded_at is None else rfc3339(row.graded_at),
    }


def _criterion(row: CriterionRow, hidden: bool) -> Row:
    values = {name: getattr(row, name) for name in ("passed", "score", "max_score", "cause", "reason")}
    return {"criterion": row.criterion, **values, **({} if hidden else {"reason": None})}


def _vote(row: VoteRow, hidden: bool) -> Row:
    values = {name: getattr(row, name) for name in _VOTE}
    return values if hidden else {**values, "content": None}


async def as_jsonl(pieces: AsyncGenerator[list[Row]]) -> AsyncGenerator[bytes]:
    async for piece in pieces:
        yield json_lines(piece)


async def as_csv(pieces: AsyncGenerator[list[Row]], table: Table) -> AsyncGenerator[bytes]:
    yield csv_lines([COLUMNS[table]])
    async for piece in pieces:
        yield csv_lines([[row[name] for name in COLUMNS[table]] for row in piece])

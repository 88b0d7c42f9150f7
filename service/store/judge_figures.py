"""What judges' votes took so far: what estimates are made from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Float, cast, func, select

from service.domain.evidence import EvidenceState
from service.domain.judging import VoteState
from service.store.database import Tx
from service.store.tables import gradings
from service.store.tables_grading import evidence_documents, votes

_READ = ("input_tokens", "cached_input_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True)
class RunVotes:
    """Votes of one method on one run, any judge's."""

    items: int
    """Different things that were voted on."""
    input_tokens: float | None
    """Of one vote, all its answers, cache included; null where none is known."""


@dataclass(frozen=True, slots=True)
class JudgeVotes:
    """Means over votes whose usage is known."""

    n: int
    input_tokens: float
    cached_share: float
    """Of the input, 0 to 1."""
    written_share: float
    output_tokens: float
    output_sd: float
    """0 for a single vote."""
    took_s: float | None


@dataclass(frozen=True, slots=True)
class JudgeSaid:
    """One judge in one grading."""

    grading_id: str
    judge: str
    votes: int
    invalid: int
    """Of them, no opinion."""


async def by_run(tx: Tx, project_id: str, method: str, run_ids: Collection[str]) -> dict[str, RunVotes]:
    """Return what was voted on each of these runs; one without votes is left out."""
    v, g = votes.c, gradings.c
    query = (
        select(g.run_id, func.count(v.item.distinct()), func.avg(_read()))
        .join(gradings, g.id == v.grading_id)
        .where(g.project_id == project_id, g.method == method, g.run_id.in_(list(run_ids)))
        .group_by(g.run_id)
    )
    return {run_id: RunVotes(n, None if read is None else float(read)) for run_id, n, read in await tx.execute(query)}


async def of_judge(tx: Tx, project_id: str, method: str, model: str | None) -> JudgeVotes | None:
    """Return what a vote takes of a judge with this model; of any judge for null. None where nothing is known."""
    v, g = votes.c, gradings.c
    read, output = _read(), _tokens("output_tokens")
    query = (
        select(
            func.count(output).label("n"),
            func.sum(read).label("read"),
            func.sum(_tokens("cached_input_tokens")).label("cached"),
            func.sum(_tokens("cache_write_tokens")).label("written"),
            func.avg(output).label("output"),
            func.coalesce(func.stddev_samp(output), 0).label("sd"),
            func.avg(v.took_s).label("took_s"),
        )
        .join(gradings, g.id == v.grading_id)
        .where(v.project_id == project_id, g.method == method, v.usage.is_not(None))
    )
    if model is not None:
        query = query.where(func.split_part(v.judge, "#", 1) == model)
    row = (await tx.execute(query)).mappings().one()
    if not row["n"]:
        return None
    whole = row["read"] or 1.0
    return JudgeVotes(
        n=row["n"],
        input_tokens=row["read"] / row["n"],
        cached_share=row["cached"] / whole,
        written_share=row["written"] / whole,
        output_tokens=row["output"],
        output_sd=row["sd"],
        took_s=row["took_s"],
    )


async def panels(tx: Tx, grading_ids: Sequence[str]) -> list[JudgeSaid]:
    """Return how many votes each judge gave in these gradings, by judge. The caller checked the project."""
    v = votes.c
    invalid = func.count().filter(v.state == VoteState.INVALID)
    query = select(v.grading_id, v.judge, func.count(), invalid).where(v.grading_id.in_(list(grading_ids)))
    rows = await tx.execute(query.group_by(v.grading_id, v.judge).order_by(v.judge))
    return [JudgeSaid(*row) for row in rows]


async def evidence_sizes(tx: Tx, project_id: str, version: str, digests: Collection[str]) -> dict[str, int]:
    """Return the bytes of the documents that are there, by digest of the deliverable."""
    c = evidence_documents.c
    mine = (c.project_id == project_id, c.version == version, c.state == EvidenceState.READY)
    query = select(c.digest, func.coalesce(c.size_bytes, 0)).where(*mine, c.digest.in_(list(digests)))
    return {digest: int(size) for digest, size in await tx.execute(query)}


async def seconds_of(tx: Tx, project_id: str, method: str) -> float | None:
    """Return how long the method's gradings took on average, from their start; null where none has ended."""
    g = gradings.c
    took = func.extract("epoch", g.graded_at - g.started_at)
    query = select(func.avg(cast(took, Float))).where(g.project_id == project_id, g.method == method)
    found = (await tx.execute(query.where(g.state == "graded"))).scalar_one()
    return None if found is None else float(found)


def _read() -> ColumnElement[Any]:
    first, *others = (_tokens(name) for name in _READ)
    return sum(others, first)


def _tokens(name: str) -> ColumnElement[Any]:
    return cast(votes.c.usage[name].astext, Float)

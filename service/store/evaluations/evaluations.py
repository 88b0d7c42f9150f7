"""One row per evaluation; see the package for the order of locks. Use it as ``from service.store.evaluations import evaluations``."""

from typing import Any

from sqlalchemy import ColumnElement, case, exists, func, select

from service.domain.cleaning import clean_json
from service.domain.errors import Conflict
from service.domain.evaluations import EvaluationState
from service.store import agents
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_evaluations import EvaluationRow, ListedEvaluation, LogRow
from service.store.tables import runs
from service.store.tables_evaluations import evaluation_log, evaluations

LISTING = Listing(
    evaluations,
    ListedEvaluation.of,
    sorts_by(
        created_at=Sort(evaluations.c.created_at),
        updated_at=Sort(func.coalesce(evaluations.c.updated_at, evaluations.c.created_at)),
        name=Sort(evaluations.c.name, str),
    ),
    {name: one_of(evaluations.c[name]) for name in ("state", "benchmark_id", "name")},
    version=evaluations.c.revision,
    labels=evaluations.c.labels,
    columns=tuple(c for c in evaluations.c if c.name not in ("spec", "resolved", "estimate", "preflight")),
)
MOST_LOG = 501


async def create(tx: Tx, values: dict[str, Any]) -> EvaluationRow:
    """Insert a draft. JSON among ``values`` is in the form that is stored."""
    query = evaluations.insert().values(values).returning(evaluations)
    return EvaluationRow.of((await tx.execute(query)).mappings().one())


async def get(tx: Tx, project_id: str, evaluation_id: str) -> EvaluationRow | None:
    """Return the project's evaluation; null if there is none (or it is another project's)."""
    mine = (evaluations.c.id == evaluation_id, evaluations.c.project_id == project_id)
    row = (await tx.execute(select(evaluations).where(*mine))).mappings().one_or_none()
    return None if row is None else EvaluationRow.of(row)


async def load(tx: Tx, evaluation_id: str) -> EvaluationRow | None:
    """Return an evaluation of any project, for workers; null: it was deleted."""
    row = (await tx.execute(select(evaluations).where(evaluations.c.id == evaluation_id))).mappings().one_or_none()
    return None if row is None else EvaluationRow.of(row)


async def turn(tx: Tx, evaluation_id: str) -> None:
    """Wait until nobody else decides on this evaluation as a whole (start, stop, resume …), until the transaction ends.

    Its runs go on meanwhile: they change its row, but take no turn. Read the row after this.
    """
    key = f"workstead.evaluation.{evaluation_id}"
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))


async def change(tx: Tx, evaluation_id: str, **columns: Any) -> EvaluationRow:
    """Write columns; the database raises the revision. No run of it may be touched after this (see the package)."""
    values = {**columns, "updated_at": func.clock_timestamp()}
    query = evaluations.update().where(evaluations.c.id == evaluation_id).values(values).returning(evaluations)
    return EvaluationRow.of((await tx.execute(query)).mappings().one())


def by_counts() -> dict[str, ColumnElement[Any]]:
    """Return ``state`` and ``ended_at`` of one that goes on, as the database says them when a run changes: ``done`` where
    every run is done, else ``running``."""
    done = func.coalesce(evaluations.c.counts["phase"]["done"].as_integer(), 0) >= evaluations.c.total
    ended_at = func.coalesce(evaluations.c.ended_at, func.clock_timestamp())
    return {"state": case((done, "done"), else_="running"), "ended_at": case((done, ended_at))}


async def note(
    tx: Tx, evaluation_id: str, actor: str, action: str, detail: dict[str, Any] | None = None
) -> None:  # fmt: skip
    """Note in its log that ``actor`` (a token's id, or a process) did ``action``."""
    values = {"evaluation_id": evaluation_id, "actor": actor, "action": action, "detail": clean_json(detail or {})}
    await tx.execute(evaluation_log.insert().values(values))


async def log(tx: Tx, evaluation_id: str, after: int = 0, limit: int = MOST_LOG) -> list[LogRow]:
    """Return at most ``limit`` notes with ids above ``after``, oldest first. The caller checked the project."""
    query = select(evaluation_log).where(evaluation_log.c.evaluation_id == evaluation_id, evaluation_log.c.id > after)
    rows = await tx.execute(query.order_by(evaluation_log.c.id).limit(min(limit, MOST_LOG)))
    return [LogRow.of(row) for row in rows.mappings()]


async def delete(tx: Tx, row: EvaluationRow) -> None:
    """Forget an evaluation that has no run, with agents that were made for it and have done nothing else.

    Raises Conflict("evaluation_under_way" | "evaluation_has_runs").
    """
    if row.state not in (EvaluationState.DRAFT, EvaluationState.DONE, EvaluationState.STOPPED):
        raise Conflict("evaluation_under_way", f"the evaluation is {row.state}; stop it first", state=row.state)
    has_runs = (await tx.execute(select(exists().where(runs.c.evaluation_id == row.id)))).scalar_one()
    if has_runs:
        raise Conflict("evaluation_has_runs", f"{row.total} runs belong to it; delete them first", runs=row.total)
    await tx.execute(evaluations.delete().where(evaluations.c.id == row.id))
    made = [str(one["id"]) for one in row.resolved.get("agents", []) if one.get("made")]
    await agents.delete_unused(tx, row.project_id, made)

"""What a preflight reads of its evaluation's tasks, and what it leaves with the evaluation."""

from datetime import UTC
from typing import Any

from sqlalchemy import ColumnElement, func, select, text

from service.domain.cleaning import clean_json
from service.domain.evaluations import EvaluationState
from service.domain.operations import ENDED_OPERATIONS
from service.domain.tasks import GraderSpec
from service.store.clock import now
from service.store.database import Tx
from service.store.tables import tasks
from service.store.tables_benchmarks import operations
from service.store.tables_evaluations import evaluation_tasks, evaluations

KIND = "preflight"
MOST = 1000
"""Environments, and methods with judges of their own, that are looked at."""
_LOST = "the preflight ended before it had found anything"


async def environments(tx: Tx, evaluation_id: str) -> list[str]:
    """Return the environments of its tasks, the commonest first."""
    name = tasks.c.manifest["environment"].astext
    query = select(name).join(evaluation_tasks, evaluation_tasks.c.task_id == tasks.c.id)
    query = query.where(evaluation_tasks.c.evaluation_id == evaluation_id).group_by(name)
    query = query.order_by(func.count().desc(), func.min(evaluation_tasks.c.position)).limit(MOST)
    return [*(await tx.execute(query)).scalars()]


async def graders(tx: Tx, evaluation_id: str) -> list[GraderSpec]:
    """Return the methods of its tasks with the judges that these name, each once; other settings are left out."""
    query = text(
        "SELECT DISTINCT g ->> 'method' AS method, g -> 'settings' -> 'judges' AS judges FROM evaluation_tasks e "
        "JOIN tasks t ON t.id = e.task_id CROSS JOIN LATERAL jsonb_array_elements(t.manifest -> 'graders') g "
        "WHERE e.evaluation_id = :id ORDER BY method LIMIT :most"
    )
    rows = await tx.execute(query, {"id": evaluation_id, "most": MOST})
    return [GraderSpec(method=row.method, settings={"judges": row.judges} if row.judges else {}) for row in rows]


async def is_checked_by(tx: Tx, evaluation_id: str, operation_id: str) -> bool:
    """Tell whether the evaluation is being checked, by this operation and by no later one."""
    query = select(evaluations.c.id).where(*_checked(operation_id), evaluations.c.id == evaluation_id)
    return (await tx.execute(query)).scalar_one_or_none() is not None


async def passed(tx: Tx, evaluation_id: str, result: dict[str, Any]) -> None:
    """Keep what was found with an evaluation that was started for it."""
    kept = evaluations.update().where(evaluations.c.id == evaluation_id)
    await tx.execute(kept.values(preflight=await _stamped(tx, result), updated_at=func.clock_timestamp()))


async def failed(tx: Tx, evaluation_id: str, operation_id: str, result: dict[str, Any]) -> bool:
    """Keep what was found and make the evaluation a draft again; one that this operation checks no more stays as it is."""
    values = {"preflight": await _stamped(tx, result), "state": EvaluationState.DRAFT}
    mine = (*_checked(operation_id), evaluations.c.id == evaluation_id)
    query = evaluations.update().where(*mine).values(**values, updated_at=func.clock_timestamp())
    return (await tx.execute(query)).rowcount > 0


async def abandon(tx: Tx) -> list[str]:
    """Make evaluations drafts again whose preflight has ended without a word (cancelled before it began, its process dead
    too often, an error of ours); return their ids."""
    its_own = operations.c.id == evaluations.c.preflight["operation_id"].astext
    still = operations.c.state.not_in([state.value for state in ENDED_OPERATIONS])
    lost = (evaluations.c.state == EvaluationState.CHECKING, ~select(1).where(its_own, still).exists())
    result = await _stamped(tx, {"ok": False, "agents": {}, "judges": {}, "runs": [], "notes": [_LOST]})
    query = evaluations.update().where(*lost).values(state=EvaluationState.DRAFT, preflight=result)
    query = query.values(updated_at=func.clock_timestamp()).returning(evaluations.c.id)
    return [*(await tx.execute(query)).scalars()]


def _checked(operation_id: str) -> tuple[ColumnElement[bool], ...]:
    by = evaluations.c.preflight["operation_id"].astext
    return evaluations.c.state == EvaluationState.CHECKING, by == operation_id


async def _stamped(tx: Tx, result: dict[str, Any]) -> dict[str, Any]:
    at = (await now(tx)).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return clean_json({**result, "at": at})

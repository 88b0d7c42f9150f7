"""What a scaffold's conformance runs found: the newest result of each case, and a badge on the scaffold."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.store.database import Tx
from service.store.rows_models import ConformanceRow
from service.store.tables import scaffolds
from service.store.tables_models import conformance_results as results


async def put(tx: Tx, project_id: str, scaffold_id: str, case: str, result: str, detail: dict[str, Any]) -> None:
    """Keep a case's result in place of an older one, and bring the scaffold's badge up to date."""
    values = {"project_id": project_id, "result": result, "detail": clean_json(detail)}
    query = insert(results).values(scaffold_id=scaffold_id, case_name=case, **values)
    changed = {**values, "created_at": func.clock_timestamp()}
    await tx.execute(query.on_conflict_do_update(index_elements=["scaffold_id", "case_name"], set_=changed))
    await tx.execute(
        scaffolds.update().where(scaffolds.c.id == scaffold_id).values(conformance=await _badge(tx, scaffold_id))
    )


async def list_for_scaffold(tx: Tx, project_id: str, scaffold_id: str) -> list[ConformanceRow]:
    """Return the newest result of each case, by name."""
    mine = (results.c.project_id == project_id, results.c.scaffold_id == scaffold_id)
    rows = await tx.execute(select(results).where(*mine).order_by(results.c.case_name))
    return [ConformanceRow.of(row) for row in rows.mappings()]


async def _badge(tx: Tx, scaffold_id: str) -> dict[str, Any]:
    query = select(results.c.result, func.count(), func.max(results.c.created_at))
    rows = (await tx.execute(query.where(results.c.scaffold_id == scaffold_id).group_by(results.c.result))).all()
    counts = {result: count for result, count, _ in rows}
    latest = max(at for _, _, at in rows)
    return {
        "passed": counts.get("pass", 0), "failed": counts.get("fail", 0), "skipped": counts.get("skipped", 0),
        "at": latest.isoformat(),
    }  # fmt: skip

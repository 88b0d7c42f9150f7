"""What judges of a grading were asked and answered, for a replay of it: requests of the ledger, by their subject."""

from sqlalchemy import Select, select

from service.store.database import Tx
from service.store.rows_requests import ModelRequestRow
from service.store.tables_models import model_requests as ledger

_JUDGE = "judge"


async def of_grading(tx: Tx, project_id: str, grading_id: str, limit: int) -> list[ModelRequestRow]:
    """Return the requests that were answered and kept, in the order in which they were made."""
    c = ledger.c
    answered = (c.state == "finished", c.error.is_(None), c.request_blob.is_not(None), c.response_blob.is_not(None))
    query: Select[tuple[object, ...]] = select(ledger).where(
        c.subject == grading_id, c.project_id == project_id, c.purpose == _JUDGE, *answered
    )
    rows = await tx.execute(query.order_by(c.created_at, c.id).limit(limit))
    return [ModelRequestRow.of(row) for row in rows.mappings()]

"""Rows that must exist in the caller's project. What is another project's answers as what is nobody's: 404."""

from service.api.auth import Caller
from service.domain.errors import NotFound
from service.store import runs
from service.store.database import Tx
from service.store.rows import RunRow


async def run_or_404(tx: Tx, caller: Caller, run_id: str) -> RunRow:
    row = await runs.get(tx, caller.project_id, run_id)
    if row is None:
        raise NotFound("not_found")
    return row

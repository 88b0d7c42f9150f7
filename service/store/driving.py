"""What a remote driver's actions change besides the event log: counters, and usage that nobody measured (NEEDS C11)."""

from decimal import Decimal
from typing import Any

from sqlalchemy import update

from service.domain.cleaning import clean_str
from service.domain.models import CostBasis, TokenUsage
from service.domain.run_states import Flag
from service.store.database import Tx
from service.store.fences import lock_run
from service.store.notifications import RUNS
from service.store.phases import notify, touch
from service.store.runs import add_flags
from service.store.tables import runs

DOING = 80
"""Most characters of what a run is doing."""


async def note_call(tx: Tx, run_id: str, doing: str) -> None:
    """Count a tool call. The caller holds the run's lock and raises the revision by its event."""
    text = clean_str(doing[:DOING])[0]
    await tx.execute(update(runs).where(runs.c.id == run_id).values(tool_calls=runs.c.tool_calls + 1, doing=text))


async def declare_usage(tx: Tx, run_id: str, requests: int, usage: TokenUsage, cost_usd: Decimal | None) -> bool:
    """Write totals that the driver declares, in place of earlier ones; False where the gateway has measured some.

    A measured run keeps its measure: what the driver says of it is an event, and no more.
    """
    run = await lock_run(tx, run_id)
    if run["requests"] and run["cost_basis"] != CostBasis.DECLARED:
        return False
    columns: dict[str, Any] = usage.model_dump() | {"requests": max(1, requests), "cost_basis": CostBasis.DECLARED}
    await touch(tx, run_id, **columns, cost_usd=cost_usd, cost_usd_all_attempts=cost_usd)
    await add_flags(tx, run_id, [Flag.COST_DECLARED])
    await notify(tx, RUNS, run_id)
    return True

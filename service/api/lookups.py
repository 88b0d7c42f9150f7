"""Rows that must exist in the caller's project. What is another project's answers as what is nobody's: 404."""

from service.api.auth import Caller
from service.domain.errors import NotFound
from service.store import benchmarks, runs
from service.store.campaigns import campaigns
from service.store.database import Tx
from service.store.evaluations import evaluations
from service.store.rows import BenchmarkRow, RunRow
from service.store.rows_campaigns import CampaignRow
from service.store.rows_evaluations import EvaluationRow


async def run_or_404(tx: Tx, caller: Caller, run_id: str) -> RunRow:
    row = await runs.get(tx, caller.project_id, run_id)
    if row is None:
        raise NotFound("not_found")
    return row


async def benchmark_or_404(tx: Tx, caller: Caller, benchmark_id: str, *, lock: bool = False) -> BenchmarkRow:
    """With ``lock`` nobody else changes it before the transaction ends."""
    row = await benchmarks.get(tx, caller.project_id, benchmark_id, lock=lock)
    if row is None:
        raise NotFound("not_found")
    return row


async def campaign_or_404(tx: Tx, caller: Caller, campaign_id: str, *, lock: bool = False) -> CampaignRow:
    """With ``lock`` nothing of it changes before the transaction ends."""
    row = await campaigns.get(tx, caller.project_id, campaign_id, lock=lock)
    if row is None:
        raise NotFound("not_found")
    return row


async def evaluation_or_404(tx: Tx, caller: Caller, evaluation_id: str, *, turn: bool = False) -> EvaluationRow:
    """With ``turn`` nobody else decides on it as a whole before the transaction ends."""
    if turn:
        await evaluations.turn(tx, evaluation_id)
    row = await evaluations.get(tx, caller.project_id, evaluation_id)
    if row is None:
        raise NotFound("not_found")
    return row

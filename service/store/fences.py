"""The run's lock and the attempt's fence. One lock order everywhere: run row, then attempt, then the rest."""

from typing import Any

from sqlalchemy import RowMapping, Select, select

from service.domain.errors import FenceLost, NotFound
from service.domain.run_states import AttemptState
from service.store.database import Tx
from service.store.tables import attempts, runs


async def lock_run(tx: Tx, run_id: str) -> RowMapping:
    """Lock the run's row until the transaction ends and return it. Raises NotFound("run_not_found")."""
    # Not against those who only refer to the run: a request's row must not wait for a transaction on its run.
    query: Select[Any] = select(runs).where(runs.c.id == run_id).with_for_update(key_share=True)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        raise NotFound("run_not_found", f"no run {run_id}")
    return row


async def check_fence(tx: Tx, run_id: str, n: int, fence: int) -> RowMapping:
    """Lock the run's row and return it, provided that ``fence`` still is attempt ``n``'s.

    Raises FenceLost when the attempt was taken over or is lost, NotFound when the run is gone.
    """
    return (await lock_attempt(tx, run_id, n, fence))[0]


async def lock_attempt(tx: Tx, run_id: str, n: int, fence: int) -> tuple[RowMapping, RowMapping]:
    """As :func:`check_fence`, and return the attempt's row too. The run's lock covers its attempts."""
    run = await lock_run(tx, run_id)
    query = select(attempts).where(attempts.c.run_id == run_id, attempts.c.n == n)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None or row["fence"] != fence or row["state"] == AttemptState.LOST:
        raise FenceLost(run_id, n)
    return run, row

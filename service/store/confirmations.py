"""What a person is asked to confirm before a run goes on: asked by the run's worker, decided over the API.

The row is the truth, whichever worker waits for it. Row, phase, event and notification change together.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, func, select, update
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json, clean_str
from service.domain.errors import Conflict, NotFound
from service.domain.events import EventType
from service.domain.ids import new_id
from service.domain.run_states import Phase
from service.store.database import Tx
from service.store.fences import check_fence, lock_run
from service.store.paging import Sort, fetch_page
from service.store.phases import append_own, change_phase, touch
from service.store.rows import AttemptRow, Page, Slice
from service.store.rows_desktop import ConfirmationRow
from service.store.tables_desktop import confirmations

PENDING, ACKNOWLEDGED, DENIED = "pending", "acknowledged", "denied"
_WORDS = {True: ACKNOWLEDGED, False: DENIED}


async def ask(tx: Tx, attempt: AttemptRow, key: str, checks: Sequence[dict[str, Any]], intent: str) -> ConfirmationRow:
    """Put it before a person, once per attempt and key; the run waits while it is pending. Raises FenceLost."""
    run = await check_fence(tx, attempt.run_id, attempt.n, attempt.fence)
    values = {
        "id": new_id("cnf"), "project_id": run["project_id"], "run_id": attempt.run_id, "attempt": attempt.n, "key": key,
        "checks": clean_json(list(checks)), "intent": clean_str(intent)[0],
    }  # fmt: skip
    made = insert(confirmations).values(**values).on_conflict_do_nothing().returning(confirmations)
    row = (await tx.execute(made)).mappings().one_or_none()
    if row is None:
        this = (
            confirmations.c.run_id == attempt.run_id,
            confirmations.c.attempt == attempt.n,
            confirmations.c.key == key,
        )
        return ConfirmationRow.of((await tx.execute(select(confirmations).where(*this))).mappings().one())
    waits = run["phase"] == Phase.RUNNING
    now = await (change_phase(tx, run, Phase.AWAITING_CONFIRMATION) if waits else touch(tx, run["id"]))
    found = ConfirmationRow.of(row)
    await append_own(tx, now, EventType.CONFIRMATION, payload_of(found))
    return found


async def get(tx: Tx, run_id: str, confirmation_id: str) -> ConfirmationRow | None:
    """The caller checked the run's project."""
    this = (confirmations.c.id == confirmation_id, confirmations.c.run_id == run_id)
    row = (await tx.execute(select(confirmations).where(*this))).mappings().one_or_none()
    return None if row is None else ConfirmationRow.of(row)


async def page_of_run(tx: Tx, run_id: str, page: Page) -> Slice[ConfirmationRow]:
    """Return what a run asked, newest first. The caller checked the run's project."""
    query = select(confirmations).where(confirmations.c.run_id == run_id)
    newest = Sort(confirmations.c.created_at, descending=True)
    rows, following = await fetch_page(tx, query, newest, confirmations.c.id, page)
    return Slice([ConfirmationRow.of(row) for row in rows], following)


async def decide(tx: Tx, run_id: str, confirmation_id: str, *, acknowledge: bool, by: str) -> ConfirmationRow:
    """Write the decision, once; the run goes on when nothing else is pending. The same decision again changes nothing.

    Raises NotFound, Conflict ``already_decided``, ``confirmation_over`` (the run does not wait for it any more).
    """
    run = await lock_run(tx, run_id)
    found = await get(tx, run_id, confirmation_id)
    if found is None:
        raise NotFound("not_found")
    if found.state == _WORDS[acknowledge]:
        return found
    if found.state != PENDING:
        raise Conflict("already_decided", f"it was {found.state} before", state=found.state)
    if found.attempt != run["attempt"] or run["phase"] != Phase.AWAITING_CONFIRMATION:
        raise Conflict("confirmation_over", f"the run is {run['phase']} and does not wait for it any more")
    values = {"state": _WORDS[acknowledge], "decided_by": by, "decided_at": func.clock_timestamp()}
    query = update(confirmations).where(confirmations.c.id == confirmation_id).values(values).returning(confirmations)
    row = ConfirmationRow.of((await tx.execute(query)).mappings().one())
    await append_own(tx, await _go_on(tx, run), EventType.CONFIRMATION, payload_of(row))
    return row


def payload_of(row: ConfirmationRow) -> dict[str, Any]:
    """Return the payload of the event ``confirmation``."""
    return {"id": row.id, "state": row.state, "by": row.decided_by, "checks": row.checks, "intent": row.intent}


async def _go_on(tx: Tx, run: RowMapping) -> RowMapping:
    open_ones = (
        confirmations.c.run_id == run["id"],
        confirmations.c.attempt == run["attempt"],
        confirmations.c.state == PENDING,
    )
    others = (await tx.execute(select(confirmations.c.id).where(*open_ones).limit(1))).first()
    return await (change_phase(tx, run, Phase.RUNNING) if others is None else touch(tx, run["id"]))

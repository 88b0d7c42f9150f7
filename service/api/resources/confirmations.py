"""``/v1/runs/{id}/confirmations``: what a provider will not have done unasked, and a person's word on it.

Only runs of agents with the setting ``confirm: human`` wait, in phase ``awaiting_confirmation``; their wall clock goes on.
"""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from service.api.auth import RunsRead, RunsWrite, State
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.run_states import Phase
from service.store import audit, confirmations
from service.store.rows import RunRow
from service.store.rows_desktop import ConfirmationRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)


class Check(View):
    id: str
    code: str
    message: str
    """The provider's words."""


class Confirmation(View):
    id: str
    run_id: str
    attempt: int
    state: str
    """pending | acknowledged | denied | lapsed (the run went on without a decision: its time was over, it was stopped)"""
    checks: list[Check]
    intent: str
    """Why the model wants it, in its words."""
    decided_by: str | None
    """Token; null: nobody has decided."""
    created_at: Timestamp
    decided_at: Timestamp | None


class DecisionRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    decision: Literal["acknowledge", "deny"]
    """``deny`` ends the run as ``safety_denied``; what it has delivered is graded."""


@router.get("/{run_id}/confirmations", operation_id="list_confirmations", response_model=ListOf[Confirmation])
async def list_confirmations(run_id: str, request: Request, caller: RunsRead, state: State, page: Paging) -> Response:
    """List what was put before a person, newest first. What a policy decided is in the run's events only."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        found = await confirmations.page_of_run(tx, run_id, page)
    views = [_view(row, run) for row in found.items]
    return answer(ListOf[Confirmation](data=views, next=next_link(request, found.next)))


@router.post(
    "/{run_id}/confirmations/{confirmation_id}", operation_id="decide_confirmation", response_model=Confirmation
)
async def decide_confirmation(
    run_id: str, confirmation_id: str, body: DecisionRequest, caller: RunsWrite, state: State
) -> Response:
    """Acknowledge or deny; the run goes on at once. The same decision may be sent again.

    409 ``already_decided`` (otherwise), ``confirmation_over`` (the run does not wait for it any more).
    """
    async with state.db.transaction() as tx:
        await run_or_404(tx, caller, run_id)
        row = await confirmations.decide(
            tx, run_id, confirmation_id, acknowledge=body.decision == "acknowledge", by=caller.token.id
        )
        detail = {"confirmation": row.id, "decision": body.decision}
        await audit.record(tx, caller.project_id, caller.token.id, "run.confirm", run_id, detail)
        run = await run_or_404(tx, caller, run_id)
    return answer(_view(row, run))


def _view(row: ConfirmationRow, run: RunRow) -> Confirmation:
    waits = run.phase is Phase.AWAITING_CONFIRMATION and run.attempt == row.attempt
    lapsed = row.state == confirmations.PENDING and not waits
    return Confirmation(
        id=row.id,
        run_id=row.run_id,
        attempt=row.attempt,
        state="lapsed" if lapsed else row.state,
        checks=[Check(**{name: str(check.get(name, "")) for name in Check.model_fields}) for check in row.checks],
        intent=row.intent,
        decided_by=row.decided_by,
        created_at=row.created_at,
        decided_at=row.decided_at,
    )

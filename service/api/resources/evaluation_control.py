"""``/v1/evaluations/{id}`` while it goes on: settings, holds, releases, and the log of who did what (NEEDS B9)."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import RunsRead, RunsWrite, State
from service.api.conditional import revision_tag
from service.api.evaluation_view import Evaluation, evaluation_view
from service.api.json_body import StrictRoute
from service.api.lookups import evaluation_or_404
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known
from service.api.rendering import Timestamp, View, answer
from service.domain.errors import Invalid
from service.lifecycle.evaluations import control
from service.lifecycle.evaluations.control import EvaluationChange, HoldRequest, Which
from service.store.database import Tx
from service.store.evaluations import evaluations, members
from service.store.rows import Cursor
from service.store.rows_evaluations import EvaluationRow, LogRow

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"], route_class=StrictRoute)


class LogEntry(View):
    """What somebody, or a process, did to an evaluation."""

    id: int
    actor: str
    """API token, or the process that did it."""
    action: str
    detail: dict[str, object]
    created_at: Timestamp


@router.patch("/{evaluation_id}", operation_id="change_evaluation", response_model=Evaluation)
async def change_evaluation(evaluation_id: str, body: EvaluationChange, caller: RunsWrite, state: State) -> Response:
    """Change name, labels, notes, concurrency, priority, budget or stop rules, at any time. Claims heed it at once.

    What is left out stays, also within ``concurrency``, ``budget`` and ``stop_rules``; null takes a limit away.
    """
    async with state.db.transaction() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        return await _answer(tx, await control.change(tx, row, caller.token.id, body))


@router.post("/{evaluation_id}/hold", operation_id="hold_evaluation", response_model=Evaluation)
async def hold_evaluation(evaluation_id: str, body: HoldRequest, caller: RunsWrite, state: State) -> Response:
    """Let nothing more begin: of the whole, of one ``agent`` (id or label), or of every agent with one ``model``.

    What runs goes on; what waits is shown as held within seconds. May be repeated.
    """
    async with state.db.transaction() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        return await _answer(tx, await control.hold(tx, row, caller.token.id, body))


@router.post("/{evaluation_id}/release", operation_id="release_evaluation", response_model=Evaluation)
async def release_evaluation(evaluation_id: str, body: Which, caller: RunsWrite, state: State) -> Response:
    """Take a hold away: that of the whole, or a person's or stop rule's of an agent or a model's agents.

    Stop rules look at what ends from now on. A budget that is used up holds again: raise it first. May be repeated.
    """
    async with state.db.transaction() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        return await _answer(tx, await control.release(tx, row, caller.token.id, body))


@router.get("/{evaluation_id}/log", operation_id="list_evaluation_log", response_model=ListOf[LogEntry])
async def list_evaluation_log(
    evaluation_id: str, request: Request, caller: RunsRead, state: State, page: Paging
) -> Response:
    """List who did what to it, oldest first."""
    only_known(request, ("limit", "cursor"), ())
    async with state.db.reading() as tx:
        await evaluation_or_404(tx, caller, evaluation_id)
        found = await evaluations.log(tx, evaluation_id, _after(page.cursor), page.limit + 1)
    shown = found[: page.limit]
    following = (str(shown[-1].id), "") if len(found) > page.limit else None
    return answer(ListOf[LogEntry](data=[_entry(row) for row in shown], next=next_link(request, following)))


def _entry(row: LogRow) -> LogEntry:
    return LogEntry(**{name: getattr(row, name) for name in LogEntry.model_fields})


def _after(cursor: Cursor | None) -> int:
    if cursor is None:
        return 0
    if not (cursor[0].isascii() and cursor[0].isdecimal() and len(cursor[0]) < 19):
        raise Invalid("bad_cursor", "the cursor is not one of this list")
    return int(cursor[0])


async def _answer(tx: Tx, row: EvaluationRow) -> Response:
    view = evaluation_view(row, await members.agents_of(tx, row.id))
    return answer(view, headers={"ETag": revision_tag(row.revision)})

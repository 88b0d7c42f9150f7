"""``/v1/evaluations``: agents by tasks by samples, drafted with an estimate, started, carried on and ended (NEEDS A4, B2, B4, D3)."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from service.api.auth import Caller, RunsRead, RunsWrite, State
from service.api.conditional import check_match, none_match, revision_tag
from service.api.evaluation_view import Evaluation, evaluation_view, listed_view
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.lookups import evaluation_or_404
from service.api.pagination import ListOf, Paging
from service.api.rendering import answer
from service.domain.evaluations import MOST_AGENTS, AgentChoice, EvaluationSpec, EvaluationState
from service.lifecycle.evaluations import drafting, missing, starting, stopping
from service.lifecycle.evaluations.missing import RetryRequest
from service.lifecycle.evaluations.recalling import estimate_again
from service.lifecycle.evaluations.stopping import EvaluationStop
from service.store import audit
from service.store.database import Tx
from service.store.evaluations import evaluations, members
from service.store.rows_evaluations import EvaluationRow

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"], route_class=StrictRoute)


class StartRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    skip_preflight: bool = False
    """Start at once; that it was skipped is kept in ``resolved``."""


class EvaluationStopRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    mode: EvaluationStop = "collect"
    """Of runs that are live: ``finish`` (a last grace), ``collect`` (kill, grade what is there), ``discard``, or ``queued``:
    they go on."""


class EvaluationQuery(ListQuery):
    state: Values = ()
    benchmark_id: Values = ()
    name: Values = ()


Choices = Annotated[list[AgentChoice], Body(min_length=1, max_length=MOST_AGENTS)]


@router.post("", operation_id="create_evaluation", response_model=Evaluation, status_code=201)
async def create_evaluation(body: EvaluationSpec, request: Request, caller: RunsWrite, state: State) -> Response:
    """Make a draft: agents and tasks are worked out and checked against each other, and estimated. Nothing runs.

    Everything that is wrong comes at once: 422 ``evaluation_refused`` with ``problems`` (``type``, ``detail``, ``agent``,
    ``task``; at most 100). Agents that are made here need the scope ``agents:write``, too. Takes an ``Idempotency-Key``.
    """
    made_here = body.matrix is not None or any(choice.scaffold is not None for choice in body.agents)
    _may_make_agents(caller, made_here)

    async def work(tx: Tx) -> Made:
        row = await drafting.draw_up(tx, state.blobs, caller.project_id, body, caller.token.id)
        return Made(await _view(tx, row), 201, f"/v1/evaluations/{row.id}")

    return await once(request, state, caller, "POST /v1/evaluations", work)


@router.get("", operation_id="list_evaluations", response_model=ListOf[Evaluation], responses=UNCHANGED)
async def list_evaluations(
    request: Request, caller: RunsRead, state: State, page: Paging, query: Annotated[EvaluationQuery, Query()]
) -> Response:
    """List evaluations, without their agents. Also takes ``label.<name>=<value>``. Sorts: created_at, updated_at, name."""
    values = {"state": query.state, "benchmark_id": query.benchmark_id, "name": query.name}
    listed = source(request, evaluations.LISTING, caller.project_id, query, page, **values)
    names = chosen(query.fields, Evaluation)
    return await answer_list(request, state, listed, listed_view, names=names, total=query.total)


@router.get("/{evaluation_id}", operation_id="get_evaluation", response_model=Evaluation, responses=UNCHANGED)
async def get_evaluation(evaluation_id: str, request: Request, caller: RunsRead, state: State) -> Response:
    """Return an evaluation with its agents; the ETag is its revision."""
    async with state.db.reading() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id)
        tag = revision_tag(row.revision)
        if none_match(request.headers.get("if-none-match"), tag):
            return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache"})
        view = await _view(tx, row)
    return answer(view, headers={"ETag": tag})


@router.post("/{evaluation_id}/estimate", operation_id="estimate_evaluation", response_model=Evaluation)
async def estimate_evaluation(evaluation_id: str, caller: RunsWrite, state: State) -> Response:
    """Estimate all runs of it anew, by what is known now."""
    async with state.db.transaction() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        row = await estimate_again(tx, state.blobs, row)
        view = await _view(tx, row)
    return answer(view, headers={"ETag": revision_tag(row.revision)})


@router.post("/{evaluation_id}/start", operation_id="start_evaluation", response_model=Evaluation)
async def start_evaluation(
    evaluation_id: str, body: StartRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Start a draft: its preflight begins (``preflight.operation_id``), and if that finds nothing, all runs are queued.

    Needs ``If-Match`` with the draft's ETag (428 without, 412 if it was changed meanwhile). Takes an ``Idempotency-Key``.
    """

    async def work(tx: Tx) -> Made:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        check_match(request.headers.get("if-match"), revision_tag(row.revision))
        row = await starting.begin(tx, row, caller.token.id, skip_preflight=body.skip_preflight)
        return Made(await _view(tx, row, {"made": row.total}), 200)

    return await once(request, state, caller, f"POST /v1/evaluations/{evaluation_id}/start", work)


@router.post("/{evaluation_id}/stop", operation_id="stop_evaluation", response_model=Evaluation)
async def stop_evaluation(
    evaluation_id: str, body: EvaluationStopRequest, caller: RunsWrite, state: State
) -> Response:  # fmt: skip
    """Cancel what has not begun, and end what runs as ``mode`` says. May be repeated. While it is checked: a draft again."""
    row, done = await stopping.stop(state.db, caller.project_id, evaluation_id, body.mode, caller.token.id)
    async with state.db.reading() as tx:
        view = await _view(tx, row, done)
    return answer(view, headers={"ETag": revision_tag(row.revision)})


@router.post("/{evaluation_id}/resume", operation_id="resume_evaluation", response_model=Evaluation)
async def resume_evaluation(evaluation_id: str, request: Request, caller: RunsWrite, state: State) -> Response:
    """Make the runs that are missing: never made, deleted, invalidated or cancelled. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        row, made = await missing.resume(tx, row, caller.token.id)
        return Made(await _view(tx, row, {"made": made}), 200)

    return await once(request, state, caller, f"POST /v1/evaluations/{evaluation_id}/resume", work)


@router.post("/{evaluation_id}/agents", operation_id="add_evaluation_agents", response_model=Evaluation)
async def add_evaluation_agents(
    evaluation_id: str, body: Choices, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Add agents; once the evaluation has started, their runs are made at once, and no others. Takes an ``Idempotency-Key``."""
    _may_make_agents(caller, any(choice.scaffold is not None for choice in body))

    async def work(tx: Tx) -> Made:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        row, made = await missing.add(tx, row, body, caller.token.id)
        if row.state is EvaluationState.DRAFT:
            row = await estimate_again(tx, state.blobs, row)
        return Made(await _view(tx, row, {"made": made}), 200)

    return await once(request, state, caller, f"POST /v1/evaluations/{evaluation_id}/agents", work)


@router.post("/{evaluation_id}/retry", operation_id="retry_evaluation", response_model=Evaluation)
async def retry_evaluation(
    evaluation_id: str, body: RetryRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Invalidate the runs that ended so, and make others in their places. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        row, made = await missing.retry(tx, row, body, caller.token.id)
        return Made(await _view(tx, row, {"made": made}), 200)

    return await once(request, state, caller, f"POST /v1/evaluations/{evaluation_id}/retry", work)


@router.delete("/{evaluation_id}", operation_id="delete_evaluation", status_code=204)
async def delete_evaluation(evaluation_id: str, caller: RunsWrite, state: State) -> Response:
    """Forget a draft, or an evaluation whose runs were all deleted (409 ``evaluation_has_runs``)."""
    async with state.db.transaction() as tx:
        row = await evaluation_or_404(tx, caller, evaluation_id, turn=True)
        await evaluations.delete(tx, row)
        await audit.record(tx, caller.project_id, caller.token.id, "evaluation.delete", row.id, {"name": row.name})
    return Response(status_code=204)


async def _view(tx: Tx, row: EvaluationRow, changed: dict[str, int] | None = None) -> Evaluation:
    return evaluation_view(row, await members.agents_of(tx, row.id), changed)


def _may_make_agents(caller: Caller, made_here: bool) -> None:
    if made_here:
        caller.require("agents:write")

"""``/v1/runs``: submit, list, read (cheaply, or waiting), stop, delete."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from service.api.auth import Caller, RunsRead, RunsWrite, State, current_caller, identify
from service.api.conditional import none_match
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, Source, answer_list
from service.api.lookups import run_or_404
from service.api.pagination import ListOf, Paging
from service.api.queue_hold import hold_of, hold_tag
from service.api.rendering import answer
from service.api.run_query import Queried, chosen_fields, run_filter
from service.api.run_view import Run, run_view
from service.api.state import ApiState
from service.api.waiting import Until, cache_control, wait_for
from service.domain.errors import NotFound
from service.domain.run_states import Phase, StopMode
from service.lifecycle.delete import delete_run
from service.lifecycle.rerun import RerunRequest, rerun
from service.lifecycle.stop import stop
from service.lifecycle.submit import RunRequest, submit
from service.store import audit, projects, runs
from service.store.database import Tx

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)


class StopRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    mode: StopMode


@router.post("", operation_id="create_run", response_model=Run, status_code=201)
async def create_run(body: RunRequest, request: Request, caller: RunsWrite, state: State) -> Response:
    """Submit one agent on one task. Takes an ``Idempotency-Key``."""

    async def work(tx: Tx) -> Made:
        project = await projects.get(tx, caller.project_id)
        if project is None:
            raise NotFound("not_found")
        row = await submit(tx, project, body)
        return Made(run_view(row), 201, f"/v1/runs/{row.id}")

    made = await once(request, state, caller, "POST /v1/runs", work)
    state.reach("submit.committed")
    return made


@router.get("", operation_id="list_runs", response_model=ListOf[Run], responses=UNCHANGED)
async def list_runs(request: Request, caller: RunsRead, state: State, page: Paging, query: Queried) -> Response:
    """List runs. Also takes ``label.<name>=<value>`` and ``facet.<name>=<value>`` (of the task).

    The ETag changes whenever one of the runs that the filters let through does; with ``fields``, each run has only the
    chosen members.
    """
    wanted, names, project_id = run_filter(request, query), chosen_fields(query), caller.project_id
    listed = Source(
        lambda tx: runs.fingerprint(tx, project_id, wanted),
        lambda tx: runs.list(tx, project_id, wanted, query.sort, page.cursor, page.limit),
        lambda tx: runs.count(tx, project_id, wanted),
    )
    return await answer_list(request, state, listed, run_view, names=names, total=query.total)


@router.get("/{run_id}", operation_id="get_run", response_model=Run, responses=UNCHANGED)
async def get_run(
    run_id: str,
    request: Request,
    state: State,
    wait_s: Annotated[float, Query(ge=0, le=60)] = 0,
    until: Until = "change",
) -> Response:
    """Return a run. ``wait_s`` waits for ``until`` (ended | graded | change) first; the ETag is the revision."""
    caller = await current_caller(await identify(request))
    caller.require("runs:read")
    known = request.headers.get("if-none-match")
    if wait_s > 0:
        await wait_for(state, caller, run_id, until, wait_s, known)
    return await _current(request, state, caller, run_id)


async def _current(request: Request, state: ApiState, caller: Caller, run_id: str) -> Response:
    async with state.db.reading() as tx:
        row = await run_or_404(tx, caller, run_id)
        hold = await hold_of(tx, run_id) if row.phase is Phase.QUEUED else None
    tag = hold_tag(row.revision, hold)
    headers = {"ETag": tag, "Cache-Control": cache_control(done=row.phase is Phase.DONE)}
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return answer(run_view(row, hold), headers=headers)


@router.post("/{run_id}/stop", operation_id="stop_run", response_model=Run)
async def stop_run(run_id: str, body: StopRequest, caller: RunsWrite, state: State) -> Response:
    """Ask a run to stop: ``finish`` (deadline = now + grace), ``collect`` (kill, grade what is there), ``discard``.

    May be repeated; a run that is done is returned as it is.
    """
    async with state.db.transaction() as tx:
        await run_or_404(tx, caller, run_id)
        await stop(tx, caller.project_id, run_id, body.mode)
        await audit.record(tx, caller.project_id, caller.token.id, "run.stop", run_id, {"mode": body.mode})
        row = await run_or_404(tx, caller, run_id)
    return answer(run_view(row))


@router.post("/{run_id}/rerun", operation_id="rerun_run", response_model=Run, status_code=201)
async def rerun_run(run_id: str, body: RerunRequest, request: Request, caller: RunsWrite, state: State) -> Response:
    """Submit the run again, with ``overrides``. Takes an ``Idempotency-Key``.

    ``fresh`` asks the models anew. ``replay`` is answered from what the earlier run's models, services and simulated
    client said, and nobody outside is asked; a request that was not asked then is answered 400 ``cassette_mismatch``, and
    a ``note`` event shows the first difference; one that was not kept whole 400 ``cassette_incomplete``. Another model or other settings need the scope ``agents:write``, too: they make an agent.
    """
    if body.overrides.another_agent:
        caller.require("agents:write")

    async def work(tx: Tx) -> Made:
        earlier = await run_or_404(tx, caller, run_id)
        project = await projects.get(tx, caller.project_id)
        if project is None:
            raise NotFound("not_found")
        row = await rerun(tx, project, earlier, body)
        return Made(run_view(row), 201, f"/v1/runs/{row.id}")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/rerun", work)


@router.delete("/{run_id}", operation_id="delete_run", status_code=204)
async def delete(run_id: str, caller: RunsWrite, state: State) -> Response:
    """Delete a run that has ended, with its events, deliverable and verdicts (409 while it has not)."""
    async with state.db.transaction() as tx:
        await run_or_404(tx, caller, run_id)
        await delete_run(tx, caller.project_id, run_id)
        await audit.record(tx, caller.project_id, caller.token.id, "run.delete", run_id, {})
    return Response(status_code=204)

"""Deliverables made elsewhere: uploaded to a run of an external agent, or graded with no run at all."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from service.api.archive_types import GRADINGS_PATH, ArchiveRoute
from service.api.auth import Caller, GradingsWrite, RunsDrive, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.lookups import run_or_404
from service.api.rendering import answer
from service.api.resources.leases import Body
from service.api.run_view import Run, run_view
from service.api.state import ApiState
from service.api.uploads import Sealing, checked_files, received, sealing
from service.domain.errors import NotFound
from service.domain.grading_plans import TASK_PLAN
from service.domain.paths import RelativePath
from service.domain.tasks import LABELS, Sha256, TaskManifest
from service.lifecycle.clock import Clock
from service.lifecycle.submit import Reference, RunRequest, submit
from service.lifecycle.uploads import seal_upload, upload_agent
from service.store import projects, tasks
from service.store.database import Tx
from service.store.rows import RunRow

json_routes = APIRouter(prefix="/v1", tags=["gradings"], route_class=StrictRoute)
archive_routes = APIRouter(tags=["gradings"], route_class=ArchiveRoute)
_MOST = 25_000


class UploadedFile(Body):
    path: RelativePath
    """Below the workspace; what is below none of the task's collect folders is put into the first one."""
    sha256: Sha256
    """Of a blob that was uploaded before."""


class DeliverableUpload(Body):
    files: list[UploadedFile] = Field(max_length=_MOST)


class GradingRequest(DeliverableUpload):
    """A deliverable to be graded with no run: it gets one, of an agent that only uploads."""

    task: Reference
    """Task id."""
    agent: Reference | None = None
    """Id or label of an agent of kind ``external``; null: the project's agent ``upload``."""
    labels: LABELS = Field(default_factory=dict[str, str])
    plan: Reference = TASK_PLAN
    """Grading plan, as of a run."""


@archive_routes.put("/v1/runs/{run_id}/deliverable", include_in_schema=False)
async def put_deliverable_archive(run_id: str, request: Request, caller: RunsDrive, state: State) -> Response:
    """Described with ``put_deliverable``, of which this is the other content type."""
    task = await _task_of(state, caller, run_id)
    async with received(request, state, task) as got, state.db.transaction() as tx:
        await got.take(tx, caller.project_id)
        row = await seal_upload(tx, run_id, got.deliverable, got.manifest, Clock())
    return answer(run_view(row))


@json_routes.put("/runs/{run_id}/deliverable", operation_id="put_deliverable", response_model=Run)
async def put_deliverable(run_id: str, body: DeliverableUpload, caller: RunsDrive, state: State) -> Response:
    """Upload what was delivered for a run of an external agent: it is sealed and graded. Only once.

    Either uploaded blobs by path, or one archive (tar, tar.gz, tar.zst, tar.xz or zip, by Content-Type).
    """
    task = await _task_of(state, caller, run_id)
    found = await _sealing(state, caller, body, task)
    async with state.db.transaction() as tx:
        await found.take(tx, caller.project_id)
        row = await seal_upload(tx, run_id, found.deliverable, found.manifest, Clock())
    return answer(run_view(row))


@archive_routes.post(GRADINGS_PATH, include_in_schema=False)
async def create_grading_from_archive(
    request: Request,
    caller: GradingsWrite,
    state: State,
    task: Annotated[str, Query(max_length=200)],
    agent: Annotated[str | None, Query(max_length=200)] = None,
    plan: Annotated[str, Query(min_length=1, max_length=200)] = TASK_PLAN,
) -> Response:
    """Described with ``create_grading``, of which this is the other content type; task, agent and plan are in the query."""
    manifest = await _task(state, caller, task)
    wanted = GradingRequest(task=task, agent=agent, plan=plan, files=[])
    async with received(request, state, manifest) as got, state.db.transaction() as tx:
        row = await _graded(tx, caller, wanted, got)
    return answer(run_view(row), 201, {"Location": f"/v1/runs/{row.id}"})


@json_routes.post("/gradings", operation_id="create_grading", response_model=Run, status_code=201)
async def create_grading(body: GradingRequest, request: Request, caller: GradingsWrite, state: State) -> Response:
    """Grade a deliverable that no run of ours made. Answers the run that holds it; its gradings are at
    ``/v1/runs/{id}/gradings``. Takes an ``Idempotency-Key``.

    Either uploaded blobs by path, or one archive by Content-Type with ``?task=``, ``?agent=`` and ``?plan=`` in the query.
    """
    found = await _sealing(state, caller, body, await _task(state, caller, body.task))

    async def work(tx: Tx) -> Made:
        row = await _graded(tx, caller, body, found)
        return Made(run_view(row), 201, f"/v1/runs/{row.id}")

    return await once(request, state, caller, "POST /v1/gradings", work)


async def _graded(tx: Tx, caller: Caller, wanted: GradingRequest, found: Sealing) -> RunRow:
    project = await projects.get(tx, caller.project_id)
    if project is None:
        raise NotFound("not_found")
    await found.take(tx, caller.project_id)
    agent = wanted.agent or await upload_agent(tx, caller.project_id)
    asked = RunRequest(task=wanted.task, agent=agent, labels=wanted.labels, plan=wanted.plan)
    run = await submit(tx, project, asked)
    return await seal_upload(tx, run.id, found.deliverable, found.manifest, Clock())


async def _sealing(state: ApiState, caller: Caller, body: DeliverableUpload, task: TaskManifest) -> Sealing:
    async with state.db.reading() as tx:
        files = await checked_files(tx, caller.project_id, {f.path: f.sha256 for f in body.files}, len(body.files))
    return await asyncio.to_thread(sealing, state.blobs, files, task)


async def _task_of(state: ApiState, caller: Caller, run_id: str) -> TaskManifest:
    async with state.db.reading() as tx:
        run = await run_or_404(tx, caller, run_id)
        found = await tasks.get(tx, caller.project_id, run.task_id)
    if found is None:
        raise NotFound("not_found")
    return found.manifest


async def _task(state: ApiState, caller: Caller, task_id: str) -> TaskManifest:
    async with state.db.reading() as tx:
        found = await tasks.get(tx, caller.project_id, task_id)
    if found is None:
        raise NotFound("task_not_found", f"no task {task_id}")
    return found.manifest


router = APIRouter()
router.include_router(archive_routes)
router.include_router(json_routes)

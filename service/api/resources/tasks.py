"""``/v1/tasks``: immutable bundles by digest. Hidden assets are named only to holders of ``hidden:read``."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.archive_types import REQUEST_BODY
from service.api.auth import Caller, State, TasksRead, TasksWrite
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.domain.errors import NotFound
from service.domain.tasks import TaskManifest
from service.graders import registry as graders
from service.store import tasks
from service.store.rows import TaskRow

router = APIRouter(prefix="/v1/tasks", tags=["tasks"], route_class=StrictRoute)
HIDDEN_READ = "hidden:read"


class Task(View):
    id: str
    name: str
    digest: Digest
    created_at: Timestamp
    manifest: dict[str, Any]
    """The manifest as created. Without ``hidden:read``: ``hidden`` and the graders' ``settings`` are null."""


class TaskQuery(ListQuery):
    name: Values = ()
    digest: Values = ()
    benchmark_id: Values = ()


def task_view(row: TaskRow, caller: Caller) -> Task:
    manifest = row.manifest.model_dump(mode="json")
    if not caller.may(HIDDEN_READ):
        manifest["hidden"] = None
        manifest["graders"] = [{"method": g["method"], "settings": None} for g in manifest["graders"]]
    return Task(id=row.id, name=row.name, digest=sha256_name(row.digest), created_at=row.created_at, manifest=manifest)


def created_answer(row: TaskRow, caller: Caller, *, created: bool) -> Response:
    return answer(task_view(row, caller), 201 if created else 200, {"Location": f"/v1/tasks/{row.id}"})


@router.post("", operation_id="create_task", response_model=Task, status_code=201, openapi_extra=REQUEST_BODY)
async def create_task(body: TaskManifest, caller: TasksWrite, state: State) -> Response:
    """Create a task from its manifest; its files' blobs are there already (422 ``missing_blobs`` lists the others).

    Or from an archive of a task directory (docs/task-bundles.md): then all bytes travel, and nothing is resumed.
    The digest of the manifest is the version: the same manifest again answers 200 with the task that exists.
    """
    for spec in body.graders:
        graders.check(spec, body)
    async with state.db.transaction() as tx:
        row, created = await tasks.create(tx, caller.project_id, body)
    return created_answer(row, caller, created=created)


@router.get("", operation_id="list_tasks", response_model=ListOf[Task], responses=UNCHANGED)
async def list_tasks(
    request: Request, caller: TasksRead, state: State, page: Paging, query: Annotated[TaskQuery, Query()]
) -> Response:
    """List tasks. Also takes ``facet.<name>=<value>`` and ``label.<name>=<value>``. Sorts: created_at, name."""
    listed = source(
        request,
        tasks.LISTING,
        caller.project_id,
        query,
        page,
        name=query.name,
        digest=tuple(d.removeprefix("sha256:") for d in query.digest),
        benchmark_id=query.benchmark_id,
    )
    names = chosen(query.fields, Task)
    return await answer_list(request, state, listed, lambda row: task_view(row, caller), names=names, total=query.total)


@router.get("/{task_id}", operation_id="get_task", response_model=Task)
async def get_task(task_id: str, caller: TasksRead, state: State) -> Response:
    async with state.db.reading() as tx:
        row = await tasks.get(tx, caller.project_id, task_id)
    if row is None:
        raise NotFound("not_found")
    return answer(task_view(row, caller))

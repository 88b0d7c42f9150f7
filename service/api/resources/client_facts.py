"""``/v1/tasks/{id}/client-facts``: what only the task's simulated client knows (NEEDS A23)."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import Caller, RunsWrite, State, TasksRead
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.operation_view import Operation, operation_view
from service.api.rendering import Digest, Timestamp, View, answer, sha256_name
from service.api.resources.tasks import HIDDEN_READ
from service.domain.errors import Conflict, NotFound
from service.domain.operations import ENDED_OPERATIONS
from service.domain.tasks import FACTS_BYTES, FileRef, Name
from service.lifecycle.client_facts import TEMPLATE, check_recipe, client_model, find_facts
from service.lifecycle.operations.client_facts import KIND, FactsSpec
from service.store import audit, client_facts, operations, tasks
from service.store.client_facts import Recipe
from service.store.database import Tx
from service.store.rows import OperationRow, TaskRow
from service.store.rows_models import ClientFactsRow

router = APIRouter(prefix="/v1/tasks", tags=["tasks"], route_class=StrictRoute)


class FactsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    model: Name | None = None
    """Catalogue name of the model that makes them; null: the one that plays the task's client."""
    template: Annotated[str, Field(max_length=100)] = TEMPLATE
    seed: int = Field(default=1, ge=0, le=2**53 - 1)
    """Goes into what the model is asked: another seed, another sheet."""


class ClientFacts(View):
    task_id: str
    source: Literal["imported", "generated"]
    path: str
    """Among the task's hidden files; of generated ones, where they would lie."""
    sha256: Digest
    size_bytes: int
    text: str
    model: str | None
    """Catalogue name of who made them; this and all that follows is null for imported ones."""
    reported_model: str | None
    """As the provider calls it."""
    template: str | None
    """name@version"""
    template_sha256: Digest | None
    """Its text, and below what the model was asked: ``GET /v1/blobs/{sha256}``."""
    prompt_sha256: Digest | None
    seed: int | None
    usage: dict[str, Any] | None
    """Tokens by kind; null where the provider did not say."""
    author: str | None
    """The token that asked for them."""
    operation_id: str | None
    created_at: Timestamp | None


@router.post("/{task_id}/client-facts", operation_id="make_client_facts", response_model=Operation, status_code=202)
async def make_client_facts(
    task_id: str, body: FactsRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Have a model write down what the client of a task without facts knows; answers with the operation.

    Once per task: asked again for the same, it answers with the operation that is under way or has made them; for others,
    409 ``client_facts_exist``, ``client_facts_under_way``. 409 ``client_facts_imported``; 422 ``client_model_needed``,
    ``model_not_found``. It spends as a run does: needs ``tasks:write`` and ``runs:write``.
    """
    caller.require("tasks:write")

    async def work(tx: Tx) -> Made:
        task = await _load(tx, caller, task_id)
        recipe = Recipe(body.model or client_model(task.manifest, None), body.template, body.seed)
        row = await _find_or_queue(tx, caller, task, recipe)
        return Made(operation_view(row), 202, f"/v1/operations/{row.id}")

    return await once(request, state, caller, f"POST /v1/tasks/{task_id}/client-facts", work)


@router.get("/{task_id}/client-facts", operation_id="get_client_facts", response_model=ClientFacts)
async def get_client_facts(task_id: str, caller: TasksRead, state: State) -> Response:
    """Return the facts and where they come from; 404 ``no_client``, ``client_facts_missing``. Needs ``hidden:read``."""
    caller.require(HIDDEN_READ)
    async with state.db.reading() as tx:
        task = await _load(tx, caller, task_id)
        found = await find_facts(tx, task.id, caller.project_id, task.manifest)
        imported = task.manifest.imported_facts() is not None
        made = None if imported else await client_facts.get(tx, caller.project_id, task.id)
    if found is None:
        raise NotFound("client_facts_missing", "nothing has been made yet: POST to this address makes it")
    text = (await asyncio.to_thread(state.blobs.read_bytes, found.sha256, FACTS_BYTES)).decode(errors="replace")
    return answer(_view(task, found, made, text), 200, {"Cache-Control": "no-store"})


async def _find_or_queue(tx: Tx, caller: Caller, task: TaskRow, recipe: Recipe) -> OperationRow:
    found = await operations.find_open_or_done(tx, caller.project_id, KIND, {"task_id": task.id})
    await check_recipe(tx, task, recipe)
    if found is not None and FactsSpec.model_validate(found.spec).recipe == recipe:
        return found
    if found is not None and found.state not in ENDED_OPERATIONS:
        raise Conflict("client_facts_under_way", "others are being made", operation=found.id)
    spec = FactsSpec(
        task_id=task.id, model=recipe.model, template=recipe.template, seed=recipe.seed, author=caller.token.id
    )
    made = await operations.create(tx, caller.project_id, KIND, spec.model_dump(mode="json"), unit="sheets")
    detail = {"model": recipe.model, "template": recipe.template, "seed": recipe.seed, "operation": made.id}
    await audit.record(tx, caller.project_id, caller.token.id, "task.client_facts", task.id, detail)
    return made


async def _load(tx: Tx, caller: Caller, task_id: str) -> TaskRow:
    row = await tasks.get(tx, caller.project_id, task_id)
    if row is None:
        raise NotFound("not_found")
    if row.manifest.client is None:
        raise NotFound("no_client", "the task has no client")
    return row


def _view(task: TaskRow, found: FileRef, made: ClientFactsRow | None, text: str) -> ClientFacts:
    digest = sha256_name(found.sha256)
    known = {"task_id": task.id, "path": found.path, "sha256": digest, "size_bytes": found.size_bytes, "text": text}
    if made is None:
        return ClientFacts.model_validate(dict.fromkeys(ClientFacts.model_fields) | known | {"source": "imported"})
    names = ("model", "reported_model", "template", "seed", "usage", "author", "operation_id", "created_at")
    digests = {name: sha256_name(getattr(made, name)) for name in ("template_sha256", "prompt_sha256")}
    return ClientFacts.model_validate(
        {**known, **{name: getattr(made, name) for name in names}, **digests, "source": "generated"}
    )

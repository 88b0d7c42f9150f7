"""``/v1/benchmarks/{id}/embeddings``: vectors of the texts of a benchmark's tasks, for a baseline of forecasts (NEEDS A21)."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import BenchmarksRead, Caller, RunsWrite, State
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.lookups import benchmark_or_404
from service.api.operation_view import Operation, operation_view
from service.api.rendering import View, answer
from service.domain.embeddings import OPERATION, EmbeddingsRequest, EmbeddingsSpec
from service.domain.operations import ENDED_OPERATIONS
from service.lifecycle.operations.embeddings import model_for
from service.store import audit, embeddings, operations
from service.store.database import Tx
from service.store.rows import OperationRow

router = APIRouter(prefix="/v1/benchmarks", tags=["benchmarks"], route_class=StrictRoute)


class Embeddings(View):
    """Vectors of one kind."""

    model: str
    asked_dimensions: int
    """0: the model's own."""
    length: int
    """Numbers of each vector."""
    tasks: int
    """Of the benchmark that have one."""


class EmbeddingsList(View):
    data: list[Embeddings]


@router.post("/{benchmark_id}/embeddings", operation_id="make_embeddings", response_model=Operation, status_code=202)
async def make_embeddings(
    benchmark_id: str, body: EmbeddingsRequest, request: Request, caller: RunsWrite, state: State
) -> Response:
    """Have a model make vectors of the texts of the tasks that have none of this kind; answers with the operation.

    Asked again for the same while it is under way, it answers with that operation. Its result says how many vectors were
    ``made`` and how many ``tasks`` there are. It spends as judges do. 422 ``model_not_found``, ``model_has_no_embeddings``.
    """

    async def work(tx: Tx) -> Made:
        found = await benchmark_or_404(tx, caller, benchmark_id)
        await model_for(tx, caller.project_id, body.model)
        row = await _find_or_queue(tx, caller, EmbeddingsSpec(benchmark_id=found.id, **body.model_dump()))
        return Made(operation_view(row), 202, f"/v1/operations/{row.id}")

    return await once(request, state, caller, f"POST /v1/benchmarks/{benchmark_id}/embeddings", work)


@router.get("/{benchmark_id}/embeddings", operation_id="list_embeddings", response_model=EmbeddingsList)
async def list_embeddings(benchmark_id: str, caller: BenchmarksRead, state: State) -> Response:
    """Return which vectors its tasks have; they themselves are table ``embeddings`` of an evaluation."""
    async with state.db.reading() as tx:
        found = await benchmark_or_404(tx, caller, benchmark_id)
        kinds = await embeddings.kinds(tx, caller.project_id, found.id)
    views = [
        Embeddings(model=k.model, asked_dimensions=k.asked_dimensions, length=k.length, tasks=k.tasks) for k in kinds
    ]
    return answer(EmbeddingsList(data=views))


async def _find_or_queue(tx: Tx, caller: Caller, spec: EmbeddingsSpec) -> OperationRow:
    wanted = spec.model_dump(mode="json")
    found = await operations.find_open_or_done(tx, caller.project_id, OPERATION, wanted)
    if found is not None and found.state not in ENDED_OPERATIONS:
        return found
    made = await operations.create(tx, caller.project_id, OPERATION, wanted, unit="tasks")
    detail = {"model": spec.model, "dimensions": spec.dimensions, "operation": made.id}
    await audit.record(tx, caller.project_id, caller.token.id, "benchmark.embeddings", spec.benchmark_id, detail)
    return made

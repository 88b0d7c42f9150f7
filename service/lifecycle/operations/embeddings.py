"""Operation ``embeddings``: vectors of the texts of a benchmark's tasks, for a baseline of forecasts (NEEDS A21).

Asked at the gateway's own side, in the ledger as every request is. What is recorded is never asked for again: a start after a
crash goes on with what is missing.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httpx

from service.domain.embeddings import BATCH, EmbeddingsSpec, request_body, shown, vectors_of
from service.domain.errors import Invalid, NotFound, Unavailable
from service.domain.grants import GrantedModel
from service.domain.models import Dialect
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.own_side import OwnWay, own_headers
from service.store import embeddings, run_models, tasks
from service.store.database import Tx

ANSWER_S = 180.0
MOST_BYTES = 4 << 20
MOST_DETAIL = 500
PATH = "/v1/embeddings"


@dataclass(frozen=True, slots=True)
class _Asking:
    way: OwnWay
    client: httpx.AsyncClient
    spec: EmbeddingsSpec
    model: GrantedModel
    project_id: str
    operation_id: str


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {benchmark_id, model, dimensions, made, tasks}.

    Raises NotFound ``benchmark_not_found``, Invalid ``model_not_found``, ``model_has_no_embeddings``, ``bad_embeddings``,
    ``embeddings_refused``, Unavailable (no gateway, or the provider fails), JobCancelled.
    """
    spec = EmbeddingsSpec.model_validate(job.spec)
    model, left, total = await ctx.in_transaction(partial(_load, job=job, spec=spec))
    if ctx.gateway is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    made = 0
    async with ctx.gateway.client(ANSWER_S) as client:
        asking = _Asking(ctx.gateway, client, spec, model, job.project_id, job.id)
        for start in range(0, len(left), BATCH):
            await job.report(total - len(left) + made, total)
            made += await _batch(ctx, asking, left[start : start + BATCH])
            ctx.crash.reach("embeddings.recorded")
    await job.report(total, total)
    return {
        "benchmark_id": spec.benchmark_id, "model": spec.model, "dimensions": spec.dimensions, "made": made,
        "tasks": total,
    }  # fmt: skip


async def model_for(tx: Tx, project_id: str, name: str) -> GrantedModel:
    """Return the model of this name. Raises Invalid ``model_not_found``, ``model_has_no_embeddings``."""
    found = await run_models.granted_models(tx, project_id, [name])
    if not found:
        raise Invalid("model_not_found", f"the project's catalogue has no model {name!r}")
    if found[0].spec.dialect is not Dialect.OPENAI:
        raise Invalid("model_has_no_embeddings", f"{name} does not speak OpenAI's API, which embeddings are part of")
    return found[0]


async def _load(tx: Tx, *, job: Job, spec: EmbeddingsSpec) -> tuple[GrantedModel, list[str], int]:
    model = await model_for(tx, job.project_id, spec.model)
    left, total = await embeddings.missing(tx, job.project_id, spec.benchmark_id, spec.model, spec.dimensions)
    if not total:
        raise NotFound("benchmark_not_found", "the benchmark is gone, or has no task")
    return model, left, total


async def _batch(ctx: OperationContext, asking: _Asking, task_ids: Sequence[str]) -> int:
    """Ask about some tasks and record the vectors; return how many."""
    manifests = await ctx.in_transaction(partial(tasks.manifests, project_id=asking.project_id, task_ids=task_ids))
    texts = {task_id: shown(manifests[task_id].instruction) for task_id in task_ids if task_id in manifests}
    if not texts:
        return 0
    spec = asking.spec
    answer = await _ask(asking, list(texts.values()))
    try:
        vectors = vectors_of(answer, len(texts), spec.dimensions)
    except ValueError as error:
        raise Invalid("bad_embeddings", f"the model's answer cannot be used: {error}") from error
    reported = cast("dict[str, Any]", answer).get("model")
    rows: list[dict[str, Any]] = [
        {
            "project_id": asking.project_id, "task_id": task_id, "model": spec.model, "asked_dimensions": spec.dimensions,
            "reported_model": reported[:200] if isinstance(reported, str) else None,
            "text_sha256": hashlib.sha256(text.encode()).hexdigest(), "vector": vector, "operation_id": asking.operation_id,
        }
        for (task_id, text), vector in zip(texts.items(), vectors, strict=True)
    ]  # fmt: skip
    await ctx.in_transaction(partial(embeddings.put, rows=rows))
    return len(rows)


async def _ask(asking: _Asking, texts: Sequence[str]) -> Any:
    """Return the answer's JSON. Raises Unavailable, Invalid."""
    body = request_body(asking.model.spec.upstream_id, texts, asking.spec.dimensions)
    try:
        token = await asyncio.to_thread(asking.way.token)
        headers = own_headers(asking.project_id, "judge", asking.spec.model)
        headers |= {"authorization": f"Bearer {token}", "x-workstead-subject": asking.operation_id}
        async with asking.client.stream("POST", PATH, json=body, headers=headers) as response:
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > MOST_BYTES:
                    raise Invalid("bad_embeddings", f"the model's answer has more than {MOST_BYTES} bytes")
    except (httpx.TransportError, OSError) as error:
        raise Unavailable("gateway_unavailable", f"the gateway does not answer: {type(error).__name__}") from error
    if response.status_code != 200:
        raise _refusal(response.status_code, bytes(data))
    try:
        return json.loads(data)
    except ValueError as error:
        raise Invalid("bad_embeddings", "the model's answer is no JSON") from error


def _refusal(status: int, data: bytes) -> Invalid | Unavailable:
    detail = data[: MOST_DETAIL * 4].decode(errors="replace")[:MOST_DETAIL]
    if status >= 500 or status == 429:
        return Unavailable("provider_unavailable", detail)
    return Invalid("embeddings_refused", detail)

"""Operation ``model_check``: what an entry of the catalogue can do, asked through the gateway's own side (NEEDS C4)."""

import asyncio
import time
from typing import Any

import httpx

from service.domain.errors import Conflict, NotFound, Unavailable
from service.domain.tasks import Strict
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.operations.model_questions import Question, found_usage, has_key, json_values, questions
from service.lifecycle.own_side import OwnWay, own_headers
from service.store import models
from service.store.database import Tx
from service.store.rows_models import ModelRow

ANSWER_S = 180.0
"""For one answer, waits for a provider that limits us included."""
MOST = 4 << 20
RAW_CHARS = 1000
"""Of a provider's error, as it came."""


class CheckSpec(Strict):
    model_id: str
    revision: int


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {ok, checks: [{name, state, status, seconds, detail}], usage, revision}.

    Raises NotFound, Conflict (the entry was replaced meanwhile), Unavailable (no gateway), JobCancelled.
    """
    spec = CheckSpec.model_validate(job.spec)
    model = await _load(ctx, job.project_id, spec.model_id)
    asked = questions(model.spec)
    checks: list[dict[str, Any]] = []
    for question in asked:
        await job.report(len(checks), len(asked))
        checks.append(await _check(ctx.gateway, model, question))
        job.say(f"{question.name}: {checks[-1]['state']}")
    await job.report(len(checks), len(asked))
    first = checks[0] if checks else {"state": "skipped", "usage": None}
    result = {"ok": first["state"] == "ok", "checks": checks, "usage": first["usage"], "revision": model.revision}

    async def write(tx: Tx) -> None:
        if not await models.checked(tx, model.id, model.revision, result):
            raise Conflict("model_changed", "the entry or its credential was replaced during the check")

    await ctx.in_transaction(write)
    return result


async def _load(ctx: OperationContext, project_id: str, model_id: str) -> ModelRow:
    async def read(tx: Tx) -> ModelRow | None:
        return await models.get(tx, project_id, model_id)

    row = await ctx.in_transaction(read)
    if row is None:
        raise NotFound("model_not_found", "the model was deleted")
    return row


async def _check(way: OwnWay | None, model: ModelRow, question: Question) -> dict[str, Any]:
    if way is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    began = time.monotonic()
    try:
        async with asyncio.timeout(ANSWER_S):
            status, data = await _ask(way, model, question)
    except (httpx.ConnectError, OSError) as error:
        raise Unavailable("gateway_unavailable", "the gateway does not answer") from error
    except (TimeoutError, httpx.TransportError) as error:
        status, data = None, f"no answer: {type(error).__name__}".encode()
    values = json_values(data)
    good = status == 200 and (not question.wants or has_key(values, question.wants))
    detail = "" if good else _raw(data) or f"the answer has no {question.wants!r}"
    return {
        "name": question.name,
        "state": "ok" if good else "failed",
        "status": status,
        "seconds": round(time.monotonic() - began, 3),
        "usage": found_usage(values),
        "detail": detail,
    }


async def _ask(way: OwnWay, model: ModelRow, question: Question) -> tuple[int, bytes]:
    bearer = {"authorization": f"Bearer {await asyncio.to_thread(way.token)}"}
    headers = bearer | own_headers(model.project_id, "check", model.name)
    transport = httpx.AsyncHTTPTransport(uds=str(way.socket))
    data = b""
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=ANSWER_S, trust_env=False) as client,
        client.stream("POST", question.path, json=dict(question.body), headers=headers) as answer,
    ):
        async for piece in answer.aiter_bytes():
            data += piece
            if len(data) > MOST:
                break
    return answer.status_code, data


def _raw(data: bytes) -> str:
    return data[: RAW_CHARS * 4].decode(errors="replace")[:RAW_CHARS]

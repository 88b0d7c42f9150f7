"""One small question to an entry of the catalogue, through the gateway's own side, and what came back as the provider said it."""

import asyncio
import time
from typing import Any

import httpx

from service.domain.errors import Unavailable
from service.lifecycle.operations.model_questions import Question, found_usage, has_key, json_values
from service.lifecycle.own_side import OwnWay, own_headers
from service.store.rows_models import ModelRow

ANSWER_S = 180.0
"""For one answer, waits for a provider that limits us included."""
MOST = 4 << 20
RAW_CHARS = 1000
"""Of a provider's error, as it came."""


async def asked_of(way: OwnWay | None, model: ModelRow, question: Question) -> dict[str, Any]:
    """Return {name, state: ok | failed, status, seconds, usage, detail}. Raises Unavailable ``gateway_unavailable``."""
    if way is None:
        raise Unavailable("gateway_unavailable", "this installation has no gateway")
    began = time.monotonic()
    try:
        async with asyncio.timeout(ANSWER_S):
            status, data = await _ask(way, model, question)
    except TimeoutError:  # before OSError, of which it is a kind: the gateway is there, and waits for the provider
        status, data = None, f"no answer within {ANSWER_S:.0f} s".encode()
    except (httpx.ConnectError, OSError) as error:
        raise Unavailable("gateway_unavailable", "the gateway does not answer") from error
    except httpx.TransportError as error:
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
    data = b""
    async with (
        way.client(ANSWER_S) as client,
        client.stream("POST", question.path, json=dict(question.body), headers=headers) as answer,
    ):
        async for piece in answer.aiter_bytes():
            data += piece
            if len(data) > MOST:
                break
    return answer.status_code, data


def _raw(data: bytes) -> str:
    return data[: RAW_CHARS * 4].decode(errors="replace")[:RAW_CHARS]

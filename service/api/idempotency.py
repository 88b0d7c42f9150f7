"""``Idempotency-Key``: the same key and body is done once; its answer is stored with the work and replayed."""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from service.api.auth import Caller
from service.api.rendering import json_answer
from service.api.state import ApiState
from service.domain.errors import Conflict, Invalid
from service.store import idempotency
from service.store.database import Tx
from service.store.idempotency import InProgress, Stored

_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")
HEADER = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Made:
    """The answer of a piece of work."""

    model: BaseModel
    status: int = 201
    location: str | None = None


Work = Callable[[Tx], Awaitable[Made]]


async def once(request: Request, state: ApiState, caller: Caller, route: str, work: Work) -> Response:
    """Do ``work`` in a transaction and answer; with an Idempotency-Key, once per project, route and key.

    The answer is stored in the transaction of the work: it is there exactly when the work is. Raises Conflict while
    another request with the key is at work, Invalid for the key with another body. Errors are not stored.
    """
    key = request.headers.get(HEADER)
    if key is None:
        async with state.db.transaction() as tx:
            return _render(await work(tx))
    if not _KEY.match(key):
        raise Invalid("bad_idempotency_key", "a key has 1 to 200 visible ASCII characters")
    body_hash = hashlib.sha256(await request.body()).hexdigest()
    async with state.db.transaction() as tx:
        found = await idempotency.begin(tx, caller.project_id, route, key, body_hash)
    match found:
        case Stored():
            return _replay(found)
        case InProgress():
            raise Conflict("idempotency_in_progress", "a request with this key is being worked on")
        case None:
            return await _first(state, caller.project_id, route, key, work)


async def _first(state: ApiState, project_id: str, route: str, key: str, work: Work) -> Response:
    try:
        async with state.db.transaction() as tx:
            made = await work(tx)
            stored = {"body": made.model.model_dump(mode="json"), "location": made.location}
            await idempotency.finish(tx, project_id, route, key, made.status, stored)
    except BaseException:
        await asyncio.shield(_abandon(state, project_id, route, key))
        raise
    return _render(made)


async def _abandon(state: ApiState, project_id: str, route: str, key: str) -> None:
    async with state.db.transaction() as tx:
        await idempotency.abandon(tx, project_id, route, key)


def _render(made: Made) -> Response:
    headers = {} if made.location is None else {"Location": made.location}
    return json_answer(made.model.model_dump_json().encode(), made.status, headers)


def _replay(found: Stored) -> Response:
    headers = {"Idempotent-Replay": "true"}
    location = found.response.get("location")
    if isinstance(location, str):
        headers["Location"] = location
    return json_answer(_dumps(found.response["body"]), found.status, headers)


def _dumps(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

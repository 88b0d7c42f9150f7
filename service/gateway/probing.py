"""A small question to a model whose breaker is open, past the gate: does the provider answer again?"""

import asyncio
import json

from service.domain.grants import GrantedModel
from service.domain.ids import new_id
from service.domain.models import Dialect
from service.gateway.asking import Asking, find_route, read_asking
from service.gateway.auth import Refused
from service.gateway.caller import own_caller
from service.gateway.forwarding import Parts
from service.gateway.headers import upstream_headers
from service.gateway.ports import CredentialUnavailable, Purpose, TryOutcome
from service.gateway.record import Record
from service.gateway.retries import outcome_of
from service.gateway.upstream import UpstreamAnswer, UpstreamFailed
from service.store import models
from service.store.breakers import Way
from service.store.database import Database
from service.store.rows_requests import NewRequest

PROBE_S = 30.0
"""For the whole answer."""
_MOST = 1 << 20
_QUESTION = {"role": "user", "content": "ping"}
_ASKS = {
    Dialect.ANTHROPIC: ("/v1/messages", {"max_tokens": 1, "messages": [_QUESTION]}),
    Dialect.OPENAI: ("/v1/chat/completions", {"max_completion_tokens": 16, "messages": [_QUESTION]}),
    Dialect.GEMINI: (
        "/v1beta/models/{model}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "ping"}]}], "generationConfig": {"maxOutputTokens": 16}},
    ),
}


class Prober:
    """Every probe is in the ledger, as a check of no run."""

    def __init__(self, db: Database, parts: Parts) -> None:
        self._db, self._parts = db, parts

    async def __call__(self, way: Way) -> TryOutcome:
        """Return how it went; NEUTRAL where nothing can be asked any more. Raises Unavailable."""
        async with self._db.reading() as tx:
            row = await models.load(tx, way.model_id)
        if row is None or (row.credential_id or "") != way.credential_id or row.spec.dialect not in _ASKS:
            return TryOutcome.NEUTRAL
        granted = GrantedModel(id=row.id, spec=row.spec, credential_id=row.credential_id, private=row.private)
        try:
            return await self._ask(row.project_id, _question(row.project_id, granted))
        except (CredentialUnavailable, Refused):
            return TryOutcome.NEUTRAL

    async def _ask(self, project_id: str, asking: Asking) -> TryOutcome:
        """Raises CredentialUnavailable, Unavailable."""
        record, parts = Record(asking, self._parts.price), self._parts
        secret = await self._secret(project_id, asking.model)
        headers = upstream_headers(
            [], asking.model.spec.headers, asking.rules.credential_headers(secret) if secret else {}, json_body=True
        )
        new = _new_request(project_id, asking, parts.ledger.gateway_id)
        await parts.ledger.begin(new)
        record.tries = 1
        try:
            async with (
                asyncio.timeout(PROBE_S),
                parts.upstream.ask("POST", asking.url, headers, asking.body, private=asking.model.private) as answer,
            ):
                return await self._read(answer, record)
        except (TimeoutError, UpstreamFailed) as error:
            record.fail(getattr(error, "reason", "upstream_stalled"), provider=True)
            return TryOutcome.FAILED
        finally:
            parts.ledger.settle(new, record.settlement())

    async def _secret(self, project_id: str, model: GrantedModel) -> str | None:
        credentials = self._parts.credentials
        if model.credential_id is None:
            return await credentials.deployment(project_id, model.spec, Purpose.CHECK)
        return await credentials.secret(project_id, model.credential_id, Purpose.CHECK)

    async def _read(self, answer: UpstreamAnswer, record: Record) -> TryOutcome:
        record.seen(answer.headers)
        record.status = answer.status
        body = await answer.start_of_body(_MOST)
        if answer.status < 300:
            asking = record.asking
            record.meter = asking.rules.meter(
                asking.route,
                streaming=False,
                content_type=answer.headers.get("content-type", ""),
                content_encoding=answer.headers.get("content-encoding", ""),
                spec=asking.model.spec,
            )
            record.meter.feed(body)
        outcome = outcome_of(answer.status)
        # A 400 or 404 is about this question: who answers it is there.
        return TryOutcome.OK if outcome is TryOutcome.NEUTRAL and answer.status >= 400 else outcome


def _question(project_id: str, model: GrantedModel) -> Asking:
    """Raises Refused."""
    path, body = _ASKS[model.spec.dialect]
    rules, route = find_route("POST", path.replace("{model}", model.spec.upstream_id), {})
    caller = own_caller(project_id, Purpose.CHECK, [model], 0.0)
    named = {} if route.model is not None else {"model": model.spec.upstream_id}
    return read_asking(rules, route, json.dumps(named | body).encode(), caller)


def _new_request(project_id: str, asking: Asking, gateway_id: str) -> NewRequest:
    spec = asking.model.spec
    return NewRequest(
        new_id("mrq"), project_id, gateway_id, None, None, Purpose.CHECK, asking.model.id, spec.provider, spec.dialect,
        f"POST {asking.route.upstream_path}", spec.upstream_id, streaming=False,
    )  # fmt: skip

"""The provider as an ASGI application: credentials, scenarios, faults, the log of what was asked."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

from service.domain.errors import Invalid
from service.models.scripted import endpoints, outgoing, strict
from service.models.scripted.answering import answer
from service.models.scripted.dialects import chat, others
from service.models.scripted.endpoints import Endpoint
from service.models.scripted.exchanges import Exchange, Log
from service.models.scripted.media import endpoints as media
from service.models.scripted.outgoing import Outgoing
from service.models.scripted.scenario import Fault, Scenario
from service.models.scripted.script import turn
from service.models.scripted.shipped import SCENARIOS
from service.models.scripted.values import mapping, text

KEY_PREFIX = "sk-scripted-"


class Provider:
    """Answers are a function of request and scenario; only faults that pass are counted, per distinct request."""

    def __init__(self, scenarios: Iterable[Scenario] = (), default: str = "success") -> None:
        self.log = Log()
        self.outage: Fault | None = None
        """Met by every request while it is set."""
        self._default = default
        self._scenarios = dict(SCENARIOS)
        for scenario in scenarios:
            self.add(scenario)

    def add(self, scenario: Scenario) -> None:
        """Know ``scenario`` from now on, in place of one with its name."""
        self._scenarios[scenario.name] = scenario

    def respond(self, exchange: Exchange) -> Outgoing:
        """Decide the answer; status, usage and scenario are noted in ``exchange``."""
        out = self._respond(exchange)
        exchange.status = out.status
        return out

    def _respond(self, exchange: Exchange) -> Outgoing:
        if exchange.path == "/api/hello":
            return Outgoing(200, ())
        if exchange.path.endswith("/models") and exchange.method == "GET":
            return outgoing.whole(others.models())
        if (made := media.respond(exchange, self.log)) is not None:
            return made if self.outage is None else outgoing.spoilt(made, self.outage)
        endpoint = endpoints.find(exchange.path) if exchange.method == "POST" else None
        if endpoint is None:
            websocket = exchange.headers.get("upgrade", "").lower() == "websocket"
            return outgoing.whole(chat.error(404, "no such endpoint"), 426 if websocket else 404)
        if not exchange.credential:
            return outgoing.whole(endpoint.wire.error(401, "no credential"), 401)
        try:
            body = mapping(json.loads(exchange.body))
        except ValueError:
            return outgoing.whole(endpoint.wire.error(400, "the body is no JSON"), 400)
        return self._answer(endpoint, body, exchange)

    def _answer(self, endpoint: Endpoint, body: Mapping[str, Any], exchange: Exchange) -> Outgoing:
        exchange.model = endpoint.model or text(body.get("model"))
        exchange.scenario = self._name(exchange)
        if (scenario := self._scenarios.get(exchange.scenario)) is None:
            return outgoing.whole(endpoint.wire.error(400, f"no scenario {exchange.scenario!r}"), 400)
        if not endpoint.converses:
            return _small(endpoint, body, exchange)
        if (wrong := strict.wrong(endpoint.kind, body, exchange.headers)) is not None:
            return outgoing.whole(endpoint.wire.error(400, wrong), 400)
        request = endpoint.read(body)
        try:
            return answer(endpoint, request, scenario, self._fault(scenario, endpoint, body, exchange), exchange)
        except Invalid as error:
            return outgoing.whole(endpoint.wire.error(400, f"{error.type}: {error.detail}"), 400)

    def _name(self, exchange: Exchange) -> str:
        """By the model's suffix, else by the key (what follows a dot only tells keys apart), else the default one."""
        if suffix := exchange.model.partition("@")[2]:
            return suffix
        if exchange.credential.startswith(KEY_PREFIX):
            return exchange.credential.removeprefix(KEY_PREFIX).partition(".")[0]
        return self._default

    def _fault(
        self, scenario: Scenario, endpoint: Endpoint, body: Mapping[str, Any], exchange: Exchange
    ) -> Fault | None:
        if self.outage is not None:
            return self.outage
        request = endpoint.read(body)
        at = turn(scenario, request)
        for number, fault in enumerate(scenario.faults):
            if fault.turn not in {None, at} or fault.tools not in {None, request.acts}:
                continue
            # Not of the bytes: a program that writes an object's fields in any order (Codex) repeats the same request.
            digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
            if fault.times is None or self.log.count(exchange.credential, number, digest) < fault.times:
                return fault
        return None


def credential(headers: Mapping[str, str], query: str) -> str:
    """Return the key of a request, wherever its dialect puts it."""
    bearer = headers.get("authorization", "")
    if bearer.lower().startswith("bearer "):
        return bearer[7:].strip()
    asked = parse_qs(query).get("key", [""])[0]
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("api-key") or unquote(asked)


def _small(endpoint: Endpoint, body: Mapping[str, Any], exchange: Exchange) -> Outgoing:
    if endpoint.kind == "embeddings":
        made, exchange.usage = others.embeddings(body)
        return outgoing.whole(made)
    counted = others.count_tokens if endpoint.kind == "count_tokens" else others.count_gemini_tokens
    return outgoing.whole(counted(exchange.body))

"""From an incoming request to what will be forwarded: route, body, model, policy. Pure but for reading the body."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlencode

from service.domain.grants import GrantedModel
from service.domain.models import Dialect
from service.domain.policies import ProviderTools
from service.gateway.auth import Refused
from service.gateway.caller import Caller
from service.gateway.dialects import registry
from service.gateway.dialects.contract import BadBody, DialectRules, Policy, RequestFacts, Route, ServerTool
from service.models.pricing import upper_bound

DEFAULT_OUTPUT = 32_000
"""Output tokens reserved where neither request nor catalogue nor agent bound them."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A request that may leave."""

    rules: DialectRules
    route: Route
    facts: RequestFacts
    model: GrantedModel
    client_body: bytes
    body: bytes
    """As it leaves."""
    denied: Sequence[ServerTool]

    @property
    def url(self) -> str:
        query = urlencode(self.route.query)
        base = self.model.spec.base_url.rstrip("/")
        return f"{base}{self.route.target(self.model.spec.upstream_id)}{'?' + query if query else ''}"


def find_route(method: str, path: str, query: dict[str, str]) -> tuple[DialectRules, Route]:
    """Raises Refused (404)."""
    route = registry.route(method, path, query)
    if route is None:
        raise Refused(404, "unknown_path", f"the gateway has no {method} {path[:200]}")
    return registry.rules_of(route.dialect), route


def read_asking(rules: DialectRules, route: Route, data: bytes, caller: Caller) -> Asking:
    """Raises Refused (400, 403)."""
    try:
        body = _parsed(data) if route.json_body else {}
        facts = rules.read(route, body)
        if facts.server_tools and caller.provider_tools is ProviderTools.REFUSE:
            names = ", ".join(tool.name for tool in facts.server_tools)
            raise Refused(
                400, "provider_tool_refused", f"provider-side tools are not allowed in this run: {names}"[:500]
            )
        model = choose_model(caller, route.dialect, facts.model or route.model)
        policy = Policy(model.spec.upstream_id, caller.provider_tools, caller.deny_hosts)
        new, denied = rules.rewrite(route, body, policy)
        out = _written(new) if route.json_body else data
    except BadBody as error:
        raise Refused(400, "bad_body", str(error)) from None
    except (ValueError, RecursionError):
        raise Refused(400, "bad_body", "the body is not JSON that can be sent on") from None
    return Asking(rules, route, facts, model, data, out, denied)


def choose_model(caller: Caller, dialect: Dialect, asked: str | None) -> GrantedModel:
    """Return the model of this dialect that the request names, by the provider's id or by the catalogue's name.

    Raises Refused (400: final for every client).
    """
    mine = [one for one in caller.models if one.spec.dialect is dialect]
    if asked is None and mine:
        return mine[0]
    for one in mine:
        if asked in (one.spec.upstream_id, one.spec.name):
            return one
    names = ", ".join(one.spec.upstream_id for one in mine) or "none"
    raise Refused(400, "model_not_allowed", f"this run may not ask {str(asked)[:200]!r} here; it may ask: {names}")


def reservation(asking: Asking, caller: Caller) -> tuple[int, Decimal | None]:
    """Return the tokens and dollars that the request may take at most (as far as its price is known)."""
    facts, spec = asking.facts, asking.model.spec
    if not asking.route.generates:
        return 0, None
    bounds = (facts.max_output_tokens, caller.max_output_tokens, spec.max_output_tokens)
    output = next((bound for bound in bounds if bound is not None), DEFAULT_OUTPUT)
    tokens = facts.estimated_input_tokens + output
    return tokens, upper_bound(spec, facts.estimated_input_tokens, output)


def _written(body: dict[str, Any]) -> bytes:
    """Raises ValueError (NaN, half a surrogate pair)."""
    return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(data: bytes) -> dict[str, Any]:
    value: Any = json.loads(data) if data else {}
    if not isinstance(value, dict):
        raise BadBody("the body must be a JSON object")
    return cast("dict[str, Any]", value)

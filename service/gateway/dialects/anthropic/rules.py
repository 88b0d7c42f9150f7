"""Messages and count_tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.models import Dialect, ModelSpec
from service.gateway.dialects import refusals
from service.gateway.dialects.anthropic.tally import AnthropicTally
from service.gateway.dialects.anthropic.tools import sift
from service.gateway.dialects.contract import BadBody, Meter, Policy, RequestFacts, Route, ServerTool
from service.gateway.dialects.meters import PassingMeter
from service.gateway.dialects.reading import bound, estimated_tokens, flag, requested_model
from service.gateway.dialects.sieve import UNCHANGED_POLICY

_PATHS = {"/v1/messages": "messages", "/v1/messages/count_tokens": "count_tokens"}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


class AnthropicRules:
    name = Dialect.ANTHROPIC

    def route(self, method: str, path: str, query: Mapping[str, str]) -> Route | None:
        bare = path.removeprefix("/anthropic")
        if method == "GET" and path == "/anthropic/v1/models":
            return Route(self.name, "models", "/v1/models", generates=False)
        kind = _PATHS.get(bare) if method == "POST" else None
        if kind is None:
            return None
        passed = {"beta": "true"} if query.get("beta") == "true" else {}
        return Route(self.name, kind, bare, passed, generates=kind == "messages")

    def read(self, route: Route, body: Mapping[str, Any]) -> RequestFacts:
        if not isinstance(body.get("messages"), list):
            raise BadBody("messages: an array is required")
        return RequestFacts(
            model=requested_model(body),
            streaming=flag(body, "stream") and route.generates,
            max_output_tokens=bound(body.get("max_tokens"), "max_tokens"),
            server_tools=sift(dict(body), UNCHANGED_POLICY)[1],
            estimated_input_tokens=estimated_tokens(body),
        )

    def rewrite(
        self, route: Route, body: dict[str, Any], policy: Policy
    ) -> tuple[dict[str, Any], Sequence[ServerTool]]:
        del route
        return sift({**body, "model": policy.upstream_id}, policy)

    def credential_headers(self, secret: str) -> Mapping[str, str]:
        return {"x-api-key": secret}

    def meter(
        self, route: Route, *, streaming: bool, content_type: str, content_encoding: str, spec: ModelSpec
    ) -> Meter:
        del route, streaming, content_type, spec
        return PassingMeter(AnthropicTally(), content_encoding)

    def refusal(self, route: Route | None, status: int, type_: str, message: str) -> tuple[Mapping[str, str], bytes]:
        del route
        error = {"type": _TYPES.get(status, "api_error"), "message": message, "code": type_}
        return refusals.headers(status), refusals.body({"type": "error", "error": error})

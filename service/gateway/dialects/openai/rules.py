"""Responses, Chat Completions, embeddings."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.models import Dialect, ModelSpec
from service.gateway.dialects import refusals
from service.gateway.dialects.contract import BadBody, Meter, Policy, RequestFacts, Route, ServerTool
from service.gateway.dialects.meters import PassingMeter
from service.gateway.dialects.openai import chat_tools, responses_tools
from service.gateway.dialects.openai.chat_tally import ChatTally
from service.gateway.dialects.openai.responses_tally import ResponsesTally
from service.gateway.dialects.reading import bound, count, estimated_tokens, flag, mapping, requested_model
from service.gateway.dialects.sieve import UNCHANGED_POLICY

_PATHS = {
    "/responses": "responses",
    "/responses/compact": "compact",
    "/responses/input_tokens": "count_tokens",
    "/chat/completions": "chat",
    "/embeddings": "embeddings",
}
_SEARCHES = {"chat": chat_tools.sift, "embeddings": chat_tools.sift}
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


class OpenAIRules:
    name = Dialect.OPENAI

    def route(self, method: str, path: str, query: Mapping[str, str]) -> Route | None:
        del query
        below = path.removeprefix("/openai")
        if not below.startswith("/v1/"):
            return None
        below = below.removeprefix("/v1")
        if method == "GET" and below == "/models":
            return Route(self.name, "models", below, generates=False)
        kind = _PATHS.get(below) if method == "POST" else None
        return None if kind is None else Route(self.name, kind, below, generates=kind != "count_tokens")

    def read(self, route: Route, body: Mapping[str, Any]) -> RequestFacts:
        if route.kind == "chat" and not isinstance(body.get("messages"), list):
            raise BadBody("messages: an array is required")
        if body.get("background"):
            raise BadBody("background: answers are given while the request lasts, not later")
        return RequestFacts(
            model=requested_model(body),
            streaming=flag(body, "stream"),
            max_output_tokens=_bound(route, body),
            server_tools=_sift(route)(dict(body), UNCHANGED_POLICY)[1],
            estimated_input_tokens=estimated_tokens(body),
        )

    def rewrite(
        self, route: Route, body: dict[str, Any], policy: Policy
    ) -> tuple[dict[str, Any], Sequence[ServerTool]]:
        new = {**body, "model": policy.upstream_id}
        if route.kind == "chat" and body.get("stream") is True:
            # The chunk with the usage passes on to a client that did not ask: all that we know skip it.
            new["stream_options"] = {**mapping(body.get("stream_options")), "include_usage": True}
        return _sift(route)(new, policy)

    def credential_headers(self, secret: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {secret}"}

    def meter(
        self, route: Route, *, streaming: bool, content_type: str, content_encoding: str, spec: ModelSpec
    ) -> Meter:
        del streaming, content_type, spec
        tally = ChatTally() if route.kind in _SEARCHES else ResponsesTally()
        return PassingMeter(tally, content_encoding)

    def refusal(self, route: Route | None, status: int, type_: str, message: str) -> tuple[Mapping[str, str], bytes]:
        del route
        kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        error = {"message": message, "type": kind, "param": None, "code": type_}
        return refusals.headers(status), refusals.body({"error": error})


def _sift(route: Route) -> Any:
    return _SEARCHES.get(route.kind, responses_tools.sift)


def _bound(route: Route, body: Mapping[str, Any]) -> int | None:
    if route.kind == "embeddings":
        return 0
    if route.kind != "chat":
        return bound(body.get("max_output_tokens"), "max_output_tokens")
    limits = [bound(body.get(name), name) for name in ("max_completion_tokens", "max_tokens")]
    most = max((limit for limit in limits if limit is not None), default=None)
    return None if most is None else most * max(count(body.get("n")) or 1, 1)

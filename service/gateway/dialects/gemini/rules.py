"""generateContent, streamGenerateContent, countTokens."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.models import Dialect, ModelSpec
from service.gateway.dialects import refusals
from service.gateway.dialects.contract import BadBody, Meter, Policy, RequestFacts, Route, ServerTool
from service.gateway.dialects.gemini.names import field
from service.gateway.dialects.gemini.tally import GeminiTally
from service.gateway.dialects.gemini.tools import sift
from service.gateway.dialects.meters import PassingMeter
from service.gateway.dialects.reading import bound, count, estimated_tokens, mapping
from service.gateway.dialects.sieve import UNCHANGED_POLICY

_PATH = re.compile(r"/v1(?:beta)?/models/((?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/@+-]{0,199}):([A-Za-z]{1,40})")
_VERBS = {
    "generateContent": "generate",
    "streamGenerateContent": "stream_generate",
    "countTokens": "count_tokens",
}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiRules:
    name = Dialect.GEMINI

    def route(self, method: str, path: str, query: Mapping[str, str]) -> Route | None:
        below = path.removeprefix("/gemini")
        if method == "GET" and path == "/gemini/v1beta/models":
            return Route(self.name, "models", "/v1beta/models", generates=False)
        found = _PATH.fullmatch(below) if method == "POST" else None
        kind = _VERBS.get(found[2]) if found else None
        if found is None or kind is None:
            return None
        passed = {"alt": "sse"} if query.get("alt") == "sse" and kind == "stream_generate" else {}
        upstream = "/v1beta/models/{model}:" + found[2]
        return Route(self.name, kind, upstream, passed, model=found[1], generates=kind != "count_tokens")

    def read(self, route: Route, body: Mapping[str, Any]) -> RequestFacts:
        if not isinstance(field(body, "contents"), list) and route.generates:
            raise BadBody("contents: an array is required")
        settings = mapping(field(body, "generationConfig"))
        most = bound(field(settings, "maxOutputTokens"), "maxOutputTokens")
        answers = max(count(field(settings, "candidateCount")) or 1, 1)
        return RequestFacts(
            model=route.model,
            streaming=route.kind == "stream_generate",
            max_output_tokens=None if most is None else most * answers,
            server_tools=sift(dict(body), UNCHANGED_POLICY)[1],
            estimated_input_tokens=estimated_tokens(body),
        )

    def rewrite(
        self, route: Route, body: dict[str, Any], policy: Policy
    ) -> tuple[dict[str, Any], Sequence[ServerTool]]:
        counted = field(body, "generateContentRequest") if route.kind == "count_tokens" else None
        inner = mapping(counted)
        if inner:
            # It repeats the model, which is the path's business here.
            new, removed = sift({**inner, "model": f"models/{policy.upstream_id}"}, policy)
            return {"generateContentRequest": new}, removed
        return sift(body, policy)

    def credential_headers(self, secret: str) -> Mapping[str, str]:
        return {"x-goog-api-key": secret}

    def meter(
        self, route: Route, *, streaming: bool, content_type: str, content_encoding: str, spec: ModelSpec
    ) -> Meter:
        del route, streaming, content_type, spec
        return PassingMeter(GeminiTally(), content_encoding)

    def refusal(self, route: Route | None, status: int, type_: str, message: str) -> tuple[Mapping[str, str], bytes]:
        del route
        name = _STATUS.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": type_, "domain": "workstead"}
        error = {"code": status, "message": message, "status": name, "details": [info]}
        return refusals.headers(status), refusals.body({"error": error})

"""The dialects by name, and which one a path belongs to."""

import json
from collections.abc import Iterable, Mapping

from service.domain.models import Dialect
from service.gateway.dialects.anthropic.rules import AnthropicRules
from service.gateway.dialects.contract import DialectRules, Route
from service.gateway.dialects.gemini.rules import GeminiRules
from service.gateway.dialects.opaque import OpaqueRules
from service.gateway.dialects.openai.rules import OpenAIRules

_RULES: Mapping[Dialect, DialectRules] = {
    rules.name: rules for rules in (AnthropicRules(), OpenAIRules(), GeminiRules(), OpaqueRules())
}


def rules_of(dialect: Dialect) -> DialectRules:
    return _RULES[dialect]


def route(method: str, path: str, query: Mapping[str, str]) -> Route | None:
    """Return the endpoint of a decoded path, or None: no dialect has it."""
    for rules in _RULES.values():
        found = rules.route(method, path, query)
        if found is not None:
            return found
    return None


def likely_dialect(path: str) -> Dialect:
    """Guess who asks at an unknown path, so that a refusal has a shape that the client reads."""
    for start, dialect in (
        ("/anthropic", Dialect.ANTHROPIC),
        ("/v1/messages", Dialect.ANTHROPIC),
        ("/api/", Dialect.ANTHROPIC),
        ("/gemini", Dialect.GEMINI),
        ("/v1beta", Dialect.GEMINI),
        ("/opaque", Dialect.OPAQUE),
    ):
        if path.startswith(start):
            return dialect
    return Dialect.OPENAI


def model_list(dialect: Dialect, names: Iterable[str]) -> bytes:
    """Return the answer to ``GET …/models``: the models that this run may ask, by the names that it may use.

    Anthropic's and OpenAI's clients read the same answer, since both ask at ``/v1/models``.
    """
    if dialect is Dialect.GEMINI:
        methods = ["generateContent", "streamGenerateContent", "countTokens"]
        models = [{"name": f"models/{n}", "displayName": n, "supportedGenerationMethods": methods} for n in names]
        return json.dumps({"models": models}).encode()
    day = "1970-01-01T00:00:00Z"
    data = [
        {
            "id": n,
            "object": "model",
            "type": "model",
            "display_name": n,
            "created": 0,
            "created_at": day,
            "owned_by": "",
        }
        for n in names
    ]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return json.dumps({"object": "list", "data": data, "has_more": False, **ends}).encode()

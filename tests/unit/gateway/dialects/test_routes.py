"""Paths as clients use them, what a body says, refusals in the dialect's own shape."""

import json
from typing import Any

import pytest

from service.domain.models import Dialect
from service.gateway.dialects import registry
from service.gateway.dialects.contract import BadBody, Policy, RequestFacts
from service.gateway.dialects.opaque import check_path

_POLICY = Policy(upstream_id="up-1")


def _facts(path: str, body: dict[str, Any]) -> RequestFacts:
    route = registry.route("POST", path, {})
    assert route is not None
    return registry.rules_of(route.dialect).read(route, body)


def _rewritten(path: str, body: dict[str, Any]) -> dict[str, Any]:
    route = registry.route("POST", path, {})
    assert route is not None
    before = json.dumps(body)
    new, removed = registry.rules_of(route.dialect).rewrite(route, body, _POLICY)
    assert json.dumps(body) == before
    assert not removed
    return new


@pytest.mark.parametrize(
    ("path", "kind", "target", "generates"),
    [
        ("/v1/messages", "messages", "/v1/messages", True),
        ("/anthropic/v1/messages", "messages", "/v1/messages", True),
        ("/v1/messages/count_tokens", "count_tokens", "/v1/messages/count_tokens", False),
        ("/v1/chat/completions", "chat", "/chat/completions", True),
        ("/openai/v1/chat/completions", "chat", "/chat/completions", True),
        ("/v1/responses", "responses", "/responses", True),
        ("/openai/v1/responses", "responses", "/responses", True),
        ("/v1/responses/compact", "compact", "/responses/compact", True),
        ("/v1/embeddings", "embeddings", "/embeddings", True),
        ("/v1beta/models/g-2.5:generateContent", "generate", "/v1beta/models/up%2F1:generateContent", True),
        ("/gemini/v1beta/models/a/g:streamGenerateContent", "stream_generate", "/v1beta/models/up%2F1:streamGenerateContent", True),
        ("/v1beta/models/g:countTokens", "count_tokens", "/v1beta/models/up%2F1:countTokens", False),
        ("/opaque/v2/run", "opaque", "/v2/run", True),
    ],
)  # fmt: skip
def test_paths(path: str, kind: str, target: str, generates: bool) -> None:
    route = registry.route("POST", path, {"beta": "true", "alt": "sse", "key": "stolen"})
    assert route is not None
    assert (route.kind, route.target("up/1"), route.generates) == (kind, target, generates)
    if route.dialect is not Dialect.OPAQUE:
        assert "key" not in route.query
    assert registry.route("DELETE", path, {}) is None


@pytest.mark.parametrize(
    "path",
    [
        "/", "/v1", "/v1/messages/", "/v1//messages", "/v1/messages/batches", "/v1/files", "/openai/v1/messages",
        "/anthropic/v1/responses", "/v1beta/models/:generateContent", "/v1beta/models/../x:generateContent",
        "/v1beta/models/g:embedContent", "/v1beta/models/g:generateContent/x", "/v1beta/cachedContents",
        "/opaque", "/opaque/", "/opaque/../v1", "/opaque/a/..", "/opaque/a//b", "/opaque/a/.", "/v1/responses/resp_1",
        "/gemini/openai/v1/chat/completions", "/v1beta/models/a b:generateContent", "/v1beta/models/a%2f:generateContent",
    ],
)  # fmt: skip
def test_nothing_else_is_a_route(path: str) -> None:
    assert registry.route("POST", path, {}) is None


def test_the_model_of_a_path_is_read_and_the_fixed_queries_pass() -> None:
    route = registry.route("POST", "/v1beta/models/x/g-1:streamGenerateContent", {"alt": "sse"})
    assert route is not None
    assert (route.model, route.query) == ("x/g-1", {"alt": "sse"})
    messages = registry.route("POST", "/v1/messages", {"beta": "true"})
    assert messages is not None
    assert messages.query == {"beta": "true"}


def test_one_list_of_models_serves_all_who_ask() -> None:
    for path, dialect in (
        ("/v1/models", Dialect.OPENAI),
        ("/openai/v1/models", Dialect.OPENAI),
        ("/anthropic/v1/models", Dialect.ANTHROPIC),
        ("/gemini/v1beta/models", Dialect.GEMINI),
    ):
        route = registry.route("GET", path, {})
        assert route is not None
        assert (route.dialect, route.kind, route.generates) == (dialect, "models", False)
    both = json.loads(registry.model_list(Dialect.OPENAI, ["a", "b"]))
    assert [m["id"] for m in both["data"]] == ["a", "b"]
    assert (both["first_id"], both["has_more"], both["object"]) == ("a", False, "list")
    assert json.loads(registry.model_list(Dialect.GEMINI, ["a"]))["models"][0]["name"] == "models/a"
    assert json.loads(registry.model_list(Dialect.ANTHROPIC, []))["first_id"] is None


def test_what_bodies_say() -> None:
    facts = _facts(
        "/v1/messages", {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"content": "x" * 4000}]}
    )
    assert (facts.model, facts.streaming, facts.max_output_tokens) == ("m", True, 100)
    assert 1000 <= facts.estimated_input_tokens <= 1100
    chat = _facts(
        "/v1/chat/completions", {"model": "m", "messages": [], "max_completion_tokens": 10, "max_tokens": 7, "n": 3}
    )
    assert (chat.streaming, chat.max_output_tokens) == (False, 30)
    assert _facts("/v1/responses", {"model": "m", "input": "x", "max_output_tokens": 9}).max_output_tokens == 9
    assert _facts("/v1/embeddings", {"model": "m", "input": "x"}).max_output_tokens == 0
    spellings: list[dict[str, Any]] = [
        {"generationConfig": {"maxOutputTokens": 5}},
        {"generation_config": {"max_output_tokens": 5}},
    ]
    for spelled in spellings:
        gemini = _facts("/v1beta/models/g:streamGenerateContent", {"contents": [], **spelled})
        assert (gemini.model, gemini.streaming, gemini.max_output_tokens) == ("g", True, 5)
    picture = {"type": "image", "source": {"type": "base64", "data": "QUJD" * 500_000}}
    assert _facts("/v1/messages", {"model": "m", "messages": [picture]}).estimated_input_tokens < 2000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": []}),
        ("/v1/messages", {"model": 3, "messages": []}),
        ("/v1/messages", {"model": "m", "messages": "hello"}),
        ("/v1/messages", {"model": "m", "messages": [], "stream": "yes"}),
        ("/v1/messages", {"model": "m", "messages": [], "max_tokens": -1}),
        ("/v1/messages", {"model": "m", "messages": [], "max_tokens": True}),
        ("/v1/chat/completions", {"model": "m"}),
        ("/v1/chat/completions", {"model": "m" * 300, "messages": []}),
        ("/v1/responses", {"model": "m", "input": "x", "background": True}),
        ("/v1/responses", {"input": "x"}),
        ("/v1beta/models/g:generateContent", {}),
        ("/opaque/x", {"a": 1}),
    ],
)
def test_bodies_that_are_refused(path: str, body: dict[str, Any]) -> None:
    with pytest.raises(BadBody):
        _facts(path, body)


def test_what_leaves_names_the_upstreams_model_and_asks_for_usage() -> None:
    assert _rewritten("/v1/messages", {"model": "m", "messages": []}) == {"model": "up-1", "messages": []}
    chat: dict[str, Any] = {
        "model": "m",
        "messages": [],
        "stream": True,
        "stream_options": {"include_usage": False, "x": 1},
    }
    assert _rewritten("/v1/chat/completions", chat)["stream_options"] == {"include_usage": True, "x": 1}
    assert "stream_options" not in _rewritten("/v1/chat/completions", {"model": "m", "messages": []})
    assert _rewritten("/v1/responses", {"model": "m", "input": "x"})["model"] == "up-1"
    counted: dict[str, Any] = {"generateContentRequest": {"model": "models/other", "contents": []}}
    assert _rewritten("/v1beta/models/g:countTokens", counted)["generateContentRequest"]["model"] == "models/up-1"


def test_refusals_have_the_dialects_shape_and_our_type() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "budget_exhausted", "domain": "workstead"}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/messages": {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "spent", "code": "budget_exhausted"},
        },
        "/v1/responses": {
            "error": {
                "message": "spent", "type": "invalid_request_error", "param": None, "code": "budget_exhausted",
            }
        },
        "/v1beta/x": {"error": {"code": 400, "message": "spent", "status": "INVALID_ARGUMENT", "details": [info]}},
        "/opaque/x": {"error": {"type": "budget_exhausted", "message": "spent"}},
    }  # fmt: skip
    for path, expected in bodies.items():
        rules = registry.rules_of(registry.likely_dialect(path))
        headers, body = rules.refusal(None, 400, "budget_exhausted", "spent")
        assert json.loads(body) == expected
        assert headers["x-should-retry"] == "false"
        later, _ = rules.refusal(None, 503, "gateway_busy", "later")
        assert "x-should-retry" not in later


def test_credentials_stand_where_the_provider_looks() -> None:
    found = {d: dict(registry.rules_of(d).credential_headers("s3")) for d in Dialect}
    assert found == {
        Dialect.ANTHROPIC: {"x-api-key": "s3"},
        Dialect.OPENAI: {"authorization": "Bearer s3"},
        Dialect.GEMINI: {"x-goog-api-key": "s3"},
        Dialect.OPAQUE: {"authorization": "Bearer s3"},
    }


def test_paths_into_private_answers_are_checked() -> None:
    check_path("$.usage.in")
    with pytest.raises(ValueError, match=r"."):
        check_path("$[")

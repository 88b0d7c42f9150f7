"""Provider-side tools per dialect: taken out, refused, or allowed and kept from denied hosts. Client tools stay."""

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest

from service.domain.policies import ProviderTools
from service.gateway.dialects import registry
from service.gateway.dialects.contract import BadBody, Policy

_MESSAGES, _RESPONSES, _CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
_GEMINI = "/v1beta/models/g:streamGenerateContent"

_OWN: dict[str, list[dict[str, Any]]] = {
    _MESSAGES: [
        {"name": "mine", "input_schema": {}},
        {"type": "custom", "name": "mine2", "input_schema": {"type": "object"}},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "computer_20241022", "name": "computer", "display_width_px": 1280, "display_height_px": 800},
        {"type": "computer_20250124", "name": "computer", "display_width_px": 1280, "display_height_px": 800},
        {"type": "computer_20251124", "name": "computer", "enable_zoom": True},
        {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}},
        {"type": "browser_toolset_20260801"},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "tool_search_tool_regex_20251119", "name": "search"},
    ],
    _RESPONSES: [
        {"type": "function", "name": "mine", "parameters": {}},
        {"type": "custom", "name": "exec"},
        {"type": "local_shell"},
        {"type": "apply_patch"},
        {"type": "computer_use_preview", "display_width": 1280, "display_height": 800, "environment": "linux"},
        {"type": "computer"},
        {"type": "tool_search"},
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
    ],
    _CHAT: [{"type": "function", "function": {"name": "mine"}}, {"type": "custom", "custom": {"name": "c"}}],
    _GEMINI: [
        {"functionDeclarations": [{"name": "f"}]},
        {"function_declarations": []},
        {"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}},
    ],
}
_THEIRS: dict[str, list[tuple[dict[str, Any], str]]] = {
    _MESSAGES: [
        ({"type": "web_search_20250305", "name": "web_search"}, "web_search_20250305"),
        ({"type": "web_fetch_20260318", "name": "web_fetch"}, "web_fetch_20260318"),
        ({"type": "code_execution_20260521", "name": "code_execution"}, "code_execution_20260521"),
        ({"type": "advisor_20260301", "name": "advisor", "model": "m"}, "advisor_20260301"),
        ({"type": "mcp_toolset", "mcp_server_name": "x"}, "mcp_toolset"),
        ({"type": "bash_20250124_remote", "name": "bash"}, "unknown:bash_20250124_remote"),
        ({"type": "hologram_20270101", "name": "h"}, "unknown:hologram_20270101"),
        ({"type": ["custom"], "name": "h"}, "unknown:?"),
    ],
    _RESPONSES: [
        ({"type": "web_search"}, "web_search"),
        ({"type": "web_search_2025_08_26"}, "web_search_2025_08_26"),
        ({"type": "web_search_preview"}, "web_search_preview"),
        ({"type": "file_search", "vector_store_ids": []}, "file_search"),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, "code_interpreter"),
        ({"type": "image_generation"}, "image_generation"),
        ({"type": "mcp", "server_label": "x", "server_url": "https://x.test"}, "mcp"),
        ({"type": "programmatic_tool_calling"}, "programmatic_tool_calling"),
        ({"type": "shell", "environment": {"type": "container_auto"}}, "shell"),
        ({"type": "hologram"}, "unknown:hologram"),
        ({}, "unknown:?"),
    ],
    _CHAT: [({"type": "web_search"}, "unknown:web_search"), ({"google_search": {}}, "unknown:?")],
    _GEMINI: [
        ({"googleSearch": {}}, "google_search"),
        ({"google_search": {}}, "google_search"),
        ({"googleSearchRetrieval": {}}, "google_search_retrieval"),
        ({"codeExecution": {}}, "code_execution"),
        ({"urlContext": {}}, "url_context"),
        ({"url_context": {}}, "url_context"),
        ({"googleMaps": {}}, "google_maps"),
        ({"fileSearch": {}}, "file_search"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"exaAiSearch": {}}, "exa_ai_search"),
        ({"hologram": {}}, "unknown:hologram"),
    ],
}
_ALL = [(path, tool, name) for path, tools in _THEIRS.items() for tool, name in tools]


def _body(path: str, tools: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    contents: dict[str, dict[str, Any]] = {
        _MESSAGES: {"model": "m", "messages": []}, _CHAT: {"model": "m", "messages": []},
        _RESPONSES: {"model": "m", "input": []}, _GEMINI: {"contents": []},
    }  # fmt: skip
    return {**contents[path], "tools": list(tools), **more}


def _leaves(
    path: str, body: dict[str, Any], tools: ProviderTools = ProviderTools.DENY, deny: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    route = registry.route("POST", path, {})
    assert route is not None
    rules, before = registry.rules_of(route.dialect), copy.deepcopy(body)
    new, removed = rules.rewrite(route, body, Policy("m", tools, deny))
    assert body == before
    if tools is ProviderTools.DENY:
        assert [t.name for t in rules.read(route, body).server_tools] == [t.name for t in removed]
    return new, [tool.name for tool in removed]


@pytest.mark.parametrize("path", _OWN)
def test_client_tools_stay_as_they_are(path: str) -> None:
    for mode in ProviderTools:
        assert _leaves(path, _body(path, _OWN[path]), mode, ["a.test"]) == (_body(path, _OWN[path]), [])


@pytest.mark.parametrize(("path", "tool", "name"), _ALL)
def test_provider_side_tools_are_taken_out(path: str, tool: dict[str, Any], name: str) -> None:
    new, removed = _leaves(path, _body(path, [_OWN[path][0], tool, _OWN[path][1]]))
    assert new == _body(path, _OWN[path][:2])
    assert removed == [name]
    alone, _ = _leaves(path, _body(path, [tool]))
    assert "tools" not in alone


@pytest.mark.parametrize(("path", "tool", "name"), _ALL)
def test_or_refused(path: str, tool: dict[str, Any], name: str) -> None:
    with pytest.raises(BadBody, match=name.replace("?", r"\?")):
        _leaves(path, _body(path, [tool]), ProviderTools.REFUSE)


@pytest.mark.parametrize(("path", "tool", "name"), _ALL)
def test_or_allowed(path: str, tool: dict[str, Any], name: str) -> None:
    assert _leaves(path, _body(path, [tool]), ProviderTools.ALLOW) == (_body(path, [tool]), [])


def test_a_gemini_tool_object_loses_only_what_the_provider_does() -> None:
    tool: dict[str, Any] = {"functionDeclarations": [{"name": "f"}], "google_search": {}, "codeExecution": {}}
    new, removed = _leaves(_GEMINI, _body(_GEMINI, [tool]))
    assert new["tools"] == [{"functionDeclarations": [{"name": "f"}]}]
    assert removed == ["google_search", "code_execution"]


def test_mcp_servers_and_fallback_models_go_too() -> None:
    servers = [{"type": "url", "url": "https://mcp.test", "name": "x"}]
    body = _body(_MESSAGES, [], mcp_servers=servers, fallbacks=[{"model": "other"}])
    new, removed = _leaves(_MESSAGES, body)
    assert removed == ["mcp_server", "fallbacks"]
    assert not {"mcp_servers", "fallbacks"} & set(new)
    # The grant names the models, whatever the policy of tools says.
    allowed, gone = _leaves(_MESSAGES, body, ProviderTools.ALLOW)
    assert (allowed["mcp_servers"], gone) == (servers, ["fallbacks"])


@pytest.mark.parametrize("field", ["web_search_options", "plugins", "search_parameters", "enable_search", "web_search"])
def test_searches_beside_the_tools_of_chat(field: str) -> None:
    for value in ({}, {"a": 1}, True, [{"id": "web"}]):
        new, removed = _leaves(_CHAT, _body(_CHAT, _OWN[_CHAT], **{field: value}))
        assert (field in new, removed) == (False, [field])
        assert _leaves(_CHAT, _body(_CHAT, [], **{field: value}), ProviderTools.ALLOW)[0][field] == value
        assert _leaves(_CHAT, _body(_CHAT, [], **{field: value}), ProviderTools.ALLOW, ["a.test"])[1] == [field]
    for off in (None, False, list[str]()):
        assert _leaves(_CHAT, _body(_CHAT, [], **{field: off}))[1] == []


def test_tools_inside_messages_are_found() -> None:
    search = {"type": "web_search_20260318", "name": "web_search"}
    added: list[dict[str, Any]] = [
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": search}},
        {"type": "tool_addition", "tool": {"type": "mcp_toolset_reference", "server_name": "x"}},
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "mine"}}},
    ]
    body = _body(_MESSAGES, [], messages=[{"role": "user", "content": added}])
    new, removed = _leaves(_MESSAGES, body)
    assert new["messages"][0]["content"] == added[2:]
    assert removed == ["web_search_20260318", "mcp_toolset"]
    own = {"type": "custom", "name": "exec"}
    nested = {"type": "namespace", "name": "n", "tools": [own, {"type": "web_search"}]}
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "additional_tools", "role": "developer", "tools": [own, {"type": "mcp", "server_label": "l"}, nested]},
    ]
    new, removed = _leaves(_RESPONSES, _body(_RESPONSES, [], input=items))
    assert removed == ["mcp", "web_search"]
    assert new["input"] == [items[0], {**items[1], "tools": [own, {**nested, "tools": [own]}]}]


def test_what_refers_to_a_removed_tool_goes_with_it() -> None:
    mine: dict[str, Any] = {
        "name": "mine",
        "input_schema": {},
        "allowed_callers": ["direct", "code_execution_20260120"],
    }
    code = {"type": "code_execution_20260120", "name": "code_execution"}
    new, _ = _leaves(_MESSAGES, _body(
        _MESSAGES, [mine, code], tool_choice={"type": "tool", "name": "code_execution"}, container="c"
    ))  # fmt: skip
    assert new["tools"] == [{**mine, "allowed_callers": ["direct"]}]
    assert not {"container", "tool_choice"} & set(new)
    kept, _ = _leaves(_MESSAGES, _body(_MESSAGES, [mine, code], tool_choice={"type": "tool", "name": "mine"}))
    assert kept["tool_choice"] == {"type": "tool", "name": "mine"}

    search, own = {"type": "web_search_preview"}, {"type": "function", "name": "f"}
    include = ["web_search_call.action.sources", "reasoning.encrypted_content"]
    new, _ = _leaves(_RESPONSES, _body(_RESPONSES, [search, own], include=include, tool_choice={"type": "web_search"}))
    assert new["include"] == include[1:]
    assert "tool_choice" not in new
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}, own]}
    new, _ = _leaves(_RESPONSES, _body(_RESPONSES, [search, own], tool_choice=allowed))
    assert new["tool_choice"]["tools"] == [own]
    new, _ = _leaves(_RESPONSES, _body(_RESPONSES, [search], tool_choice="required"))
    assert "tool_choice" not in new
    new, _ = _leaves(_RESPONSES, _body(_RESPONSES, [search], prompt={"id": "pmpt_1"}))
    assert "prompt" not in new

    new, _ = _leaves(_GEMINI, _body(_GEMINI, [{"googleSearch": {}}], tool_config={"x": 1}, toolConfig={"y": 1}))
    assert not {"tool_config", "toolConfig", "tools"} & set(new)


def test_a_shell_without_a_place_runs_at_the_client() -> None:
    new, removed = _leaves(_RESPONSES, _body(_RESPONSES, [{"type": "shell"}]))
    assert (new["tools"], removed) == ([{"type": "shell", "environment": {"type": "local"}}], [])


def test_denied_hosts_reach_the_blocked_domains() -> None:
    def tools(path: str, tool: dict[str, Any]) -> Any:
        new, removed = _leaves(path, _body(path, [tool]), ProviderTools.ALLOW, ["a.test", "*.b.test"])
        return new["tools"][0] if "tools" in new else removed

    search = {"type": "web_search_20250305", "name": "web_search"}
    assert tools(_MESSAGES, search) == {**search, "blocked_domains": ["a.test", "b.test"]}
    blocked = {**search, "blocked_domains": ["c.test", "a.test"]}
    assert tools(_MESSAGES, blocked)["blocked_domains"] == ["c.test", "a.test", "b.test"]
    for domains, kept in (
        (["ok.test", "A.test", "x.a.test", "test"], ["ok.test"]),
        (["a.test/path", "b.test"], None),
    ):
        found = tools(_MESSAGES, {**search, "allowed_domains": domains})
        assert found == (["web_search_20250305"] if kept is None else {**search, "allowed_domains": kept})
        found = tools(_RESPONSES, {"type": "web_search", "filters": {"allowed_domains": domains}})
        assert found == (
            ["web_search"] if kept is None else {"type": "web_search", "filters": {"allowed_domains": kept}}
        )
    # They cannot be told which hosts to leave alone.
    assert tools(_RESPONSES, {"type": "web_search"}) == ["web_search"]
    assert tools(_GEMINI, {"googleSearch": {}}) == ["google_search"]
    assert tools(_GEMINI, {"codeExecution": {}}) == {"codeExecution": {}}


_URL = "https://evil.test/?what=secret"
_REMOTE: list[tuple[str, dict[str, Any]]] = [
    (_MESSAGES, {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": _URL}}]}]}),
    (_MESSAGES, {"messages": [{"role": "user", "content": [
        {"type": "tool_result", "content": [{"type": "document", "source": {"type": "url", "url": _URL}}]}]}]}),
    (_MESSAGES, {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": [
        {"type": "image", "source": {"type": "url", "url": _URL}}]}}]}]}),
    (_CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": _URL}}]}]}),
    (_CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": _URL}]}]}),
    (_RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": _URL}]}]}),
    (_RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": _URL}]}]}),
    (_RESPONSES, {"input": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": _URL}]}]}),
    (_RESPONSES, {"input": [{"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": _URL}}]}),
    (_GEMINI, {"contents": [{"parts": [{"fileData": {"fileUri": _URL}}]}]}),
    (_GEMINI, {"contents": [{"parts": [{"file_data": {"file_uri": _URL}}]}]}),
    (_GEMINI, {"system_instruction": {"parts": [{"fileData": {"file_uri": _URL}}]}}),
    (_GEMINI, {"contents": [{"parts": [{"functionResponse": {"parts": [{"fileData": {"fileUri": _URL}}]}}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "content"), _REMOTE)
def test_the_provider_fetches_nothing_for_a_run_without_network(path: str, content: dict[str, Any]) -> None:
    body = _body(path, [], **content)
    new, removed = _leaves(path, body)
    assert "evil.test" not in json.dumps(new)
    assert removed == ["url_source"]
    assert _leaves(path, body, ProviderTools.ALLOW) == (body, [])
    assert "evil.test" not in json.dumps(_leaves(path, body, ProviderTools.ALLOW, ["evil.test"])[0])
    with pytest.raises(BadBody):
        _leaves(path, body, ProviderTools.REFUSE)


def test_enclosed_pictures_stay() -> None:
    data = "data:image/png;base64,QUJD"
    cases: list[tuple[str, dict[str, Any]]] = [
        (_MESSAGES, {"messages": [{"content": [{"type": "image", "source": {"type": "base64", "data": "QUJD"}}]}]}),
        (_CHAT, {"messages": [{"content": [{"type": "image_url", "image_url": {"url": data}}]}]}),
        (_RESPONSES, {"input": [{"content": [{"type": "input_image", "image_url": data}]}]}),
        (_GEMINI, {"contents": [{"parts": [{"inlineData": {"data": "QUJD"}}]}]}),
    ]
    for path, content in cases:
        body = _body(path, [], **content)
        assert _leaves(path, body) == (body, [])


@pytest.mark.parametrize("path", _OWN)
@pytest.mark.parametrize("odd", [None, 3, "x", {}, {"a": 1}, [None], [3], ["x"], [[{"type": "web_search"}]], True])
def test_odd_shapes_are_the_upstreams_to_refuse(path: str, odd: object) -> None:
    key = {_RESPONSES: "input", _GEMINI: "systemInstruction"}.get(path, "system")
    for name in ("tools", key, "tool_choice", "include", "prompt", "mcp_servers"):
        new, _ = _leaves(path, {**_body(path, []), name: odd})
        assert "web_search" not in json.dumps(new.get("tools"))

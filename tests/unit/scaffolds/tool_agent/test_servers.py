"""Settings of MCP servers, and what they say of themselves: checked and bounded."""

import json
from typing import Any

import pytest

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.scaffolds.tool_loop.servers import results
from service.scaffolds.tool_loop.servers.settings import McpServer, servers_of
from tests.unit.scaffolds.tool_agent.mcp_server import PNG

SERVER: dict[str, Any] = {"command": ["small"]}
ANY = McpServer(command=["small"])
OBJECT: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize(
    ("servers", "type"),
    [
        ({"small": {}}, "bad_settings"),
        ({"small": {**SERVER, "service": "tools"}}, "bad_settings"),
        ({"small": {"service": "tools", "env": {"A": "b"}}}, "bad_settings"),
        ({"small": {"service": "tools", "path": "x?y"}}, "bad_settings"),
        ({"Not a name": SERVER}, "bad_settings"),
        ({"small": {**SERVER, "colour": "red"}}, "bad_settings"),
        ({"small": {"service": "tools"}}, "service_not_granted"),
        ({f"s{n}": SERVER for n in range(9)}, "bad_settings"),
        (7, "bad_settings"),
    ],
)
def test_what_cannot_be_is_refused(servers: Any, type: str) -> None:
    with pytest.raises(Invalid) as caught:
        servers_of(AgentSettings.of({"mcp_servers": servers, "services": ["search"]}))
    assert caught.value.type == type


def test_what_is_allowed_and_not_denied_is_offered() -> None:
    listed = [{"name": name, "inputSchema": OBJECT} for name in ("a", "b", "c")]
    server = McpServer(command=["small"], allow=["a", "b"], deny=["b"])
    assert [one["name"] for one in results.chosen(server, listed)[0]] == ["a"]


def test_schemas_are_bounded_one_by_one_and_together() -> None:
    half = {"type": "object", "description": "x" * (results.SCHEMA_CHARS - 100)}
    listed: list[Any] = [{"name": f"t{n}", "inputSchema": half, "description": "y" * 9999} for n in range(6)]
    listed += [{"name": "huge", "inputSchema": {"type": "object", "description": "x" * results.SCHEMA_CHARS}}]
    listed += [{"name": "list", "inputSchema": {"type": "array"}}, {"name": "none"}, {"inputSchema": OBJECT}]
    found, left_out = results.chosen(ANY, listed)
    assert len(json.dumps([one["schema"] for one in found])) < results.SCHEMAS_CHARS + 100
    assert [one["name"] for one in found] == ["t0", "t1", "t2", "t3"]
    assert [why.partition(":")[0] for why in left_out] == ["t4", "t5", "huge", "list", "none"]
    assert all(len(one["description"]) == results.DESCRIPTION_CHARS for one in found)


def test_a_server_has_so_many_tools_and_no_more() -> None:
    found, left_out = results.chosen(ANY, [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(70)])
    assert (len(found), len(left_out)) == (results.MOST_TOOLS, 6)


def test_names_are_what_providers_take_and_all_different() -> None:
    names = ["add", "add number", "add.number", "add_number", "x" * 100, "x" * 101, "ü"]
    offered = [results.offered_name("small", name) for name in names]
    assert offered[0] == "mcp__small__add"
    assert len(set(offered)) == len(names)
    assert all(len(name) <= 64 and name.isascii() and name.replace("-", "_").isidentifier() for name in offered)


def test_only_what_says_that_it_reads_goes_together_with_others() -> None:
    found, _ = results.chosen(ANY, [
        {"name": "a", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
        {"name": "b", "inputSchema": OBJECT, "annotations": {"readOnlyHint": "yes"}},
    ])  # fmt: skip
    assert [results.as_tool("s", one).alone for one in found] == [False, True]


def block(**fields: Any) -> dict[str, Any]:
    return {"content": [fields]}


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (block(type="text", text="hello"), {"text": "hello", "is_error": False}),
        ({**block(type="text", text="no"), "isError": True}, {"text": "no", "is_error": True}),
        ({"structuredContent": {"a": "ü"}}, {"text": '{"a": "ü"}', "is_error": False}),
        ({}, {"text": "(no output)", "is_error": False}),
        (block(type="resource", resource={"uri": "u", "text": "body"}), {"text": "body", "is_error": False}),
        (block(type="resource_link", uri="file:///x"), {"text": "file:///x", "is_error": False}),
        (block(type="audio", data="…"), {"text": "[audio that cannot be shown]", "is_error": False}),
        (block(type="image", data="bm8=", mimeType="image/png"), {"text": "[image that cannot be shown]", "is_error": False}),
        ({"content": "nonsense", "isError": "yes"}, {"text": "(no output)", "is_error": False}),
        (
            block(type="image", data=PNG, mimeType="text/html"),
            {"text": "(an image)", "is_error": False, "images": [{"media_type": "image/png", "data": PNG}]},
        ),
    ],
)  # fmt: skip
def test_a_result_is_what_a_model_can_be_told(result: dict[str, Any], value: dict[str, Any]) -> None:
    assert results.told(result) == value


def test_much_is_cut_and_few_images_are_kept() -> None:
    told = results.told({"content": [{"type": "image", "data": PNG}] * 9 + [{"type": "text", "text": "ab" * 50_000}]})
    assert len(told["images"]) == results.MOST_IMAGES
    assert len(told["text"]) < results.RESULT_CHARS + 100
    assert "characters are not shown" in told["text"]

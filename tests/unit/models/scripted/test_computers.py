"""The computer in a script: said in the vocabulary that the request asks for; requests that the APIs refuse are refused."""

import copy
from typing import Any

import pytest

from service.domain.errors import Invalid
from service.models.scripted.endpoints import find
from service.models.scripted.scenario import Action, Computer, Scenario
from service.models.scripted.script import reply
from service.models.scripted.strict import wrong

Json = dict[str, Any]
PATHS = {
    "messages": "/v1/messages", "responses": "/v1/responses", "chat": "/v1/chat/completions",
    "generate": "/v1beta/models/gemini-3.5-pro:generateContent",
}  # fmt: skip
LEGACY = "/v1beta/models/gemini-2.5-computer-use:generateContent"
PNG, WEBP = "iVBORw0KGgoAAAA=", "UklGRgAAAABXRUJQ"
PAYLOADS: dict[str, list[Json]] = {
    "anthropic.20250124": [{"action": "key", "text": "a"}, {"action": "wait", "duration": 1}],
    "anthropic.computer_toolset_20260801": [{"action": "key", "text": "a"}],
    "openai.computer": [{"action": {"type": "wait"}}, {"actions": [{"type": "screenshot"}]}],
    "openai.computer_use_preview": [{"actions": [{"type": "wait"}, {"type": "screenshot"}]}],
    "gemini.legacy": [{"name": "wait_5_seconds", "args": {}}],
    "gemini.3_5": [{"name": "wait", "args": {"seconds": 1}}],
    "workstead.unified": [{"actions": [{"type": "wait"}]}],
}


def tool(kind: str, **more: Any) -> Json:
    sizes = {"display_width_px": 1280, "display_height_px": 800, "name": "computer"}
    return {"type": kind} | (sizes if kind.startswith("computer_20") else {}) | more


PREVIEW = tool("computer_use_preview", display_width=1280, display_height=800, environment="linux")
SCHEMA: Json = {"type": "object", "properties": {"actions": {"type": "array"}}}


def said(path: str, tools: list[Json], step: Computer, **more: Any) -> Json:
    """Return the whole answer of the wire to a first request."""
    endpoint = find(path)
    assert endpoint is not None
    body = {"messages": [], "input": "Do it", "contents": [], "tools": tools, **more}
    scenario = Scenario(name="s", steps=[Action(computer=step)])
    return endpoint.wire.whole(reply(scenario, endpoint.read(body)))


def test_anthropic_calls_one_tool_or_a_member_of_a_set() -> None:
    step = Computer(payloads=PAYLOADS)
    blocks = said(PATHS["messages"], [tool("computer_20250124")], step)["content"]
    assert [(b["name"], b["input"], b.get("toolset_name")) for b in blocks] == [
        ("computer", payload, None) for payload in PAYLOADS["anthropic.20250124"]
    ]
    assert len({b["id"] for b in blocks}) == 2
    (member,) = said(PATHS["messages"], [{"type": "computer_toolset_20260801"}], step)["content"]
    assert (member["name"], member["input"], member["toolset_name"]) == ("key", {"text": "a"}, "computer")


def test_openai_batches_where_a_call_takes_several() -> None:
    step = Computer(payloads=PAYLOADS)
    (batch,) = said(PATHS["responses"], [tool("computer")], step)["output"]
    assert (batch["type"], batch["actions"]) == ("computer_call", [{"type": "wait"}, {"type": "screenshot"}])
    assert batch["pending_safety_checks"] == []
    calls = said(PATHS["responses"], [PREVIEW], step)["output"]
    assert [call["action"]["type"] for call in calls] == ["wait", "screenshot"]
    assert len({call["call_id"] for call in calls}) == 2


@pytest.mark.parametrize(("path", "name"), [(PATHS["generate"], "wait"), (LEGACY, "wait_5_seconds")])
def test_gemini_models_are_told_apart_by_their_names(path: str, name: str) -> None:
    (candidate,) = said(path, [{"computerUse": {}}], Computer(payloads=PAYLOADS))["candidates"]
    assert candidate["content"]["parts"][0]["functionCall"]["name"] == name


def test_a_plain_function_is_called_as_one() -> None:
    offered = [{"type": "function", "function": {"name": "computer", "parameters": SCHEMA}}]
    (choice,) = said(PATHS["chat"], offered, Computer(payloads=PAYLOADS))["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("computer", '{"actions": [{"type": "wait"}]}')


def test_a_request_that_the_script_has_no_words_for_is_refused() -> None:
    with pytest.raises(Invalid, match=r"offered: openai\.computer$"):
        said(PATHS["responses"], [tool("computer")], Computer(payloads={"gemini.3_5": [{"name": "wait"}]}))
    with pytest.raises(Invalid, match="comes after error"):
        said(PATHS["responses"], [tool("computer")], Computer(payloads=PAYLOADS, after="error"))


SOURCE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
BETA = {"anthropic-beta": "other, computer-use-2025-01-24"}
USED: Json = {"type": "tool_use", "id": "t1", "name": "computer", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}, SOURCE]}
MESSAGES: Json = {
    "tools": [tool("computer_20250124"), {"type": "computer_toolset_20260801"}],
    "messages": [
        {"role": "user", "content": "Do it"},
        {"role": "assistant", "content": [USED]},
        {"role": "user", "content": [RESULT, SOURCE]},
    ],
}
CALL: Json = {
    "type": "computer_call", "id": "i1", "call_id": "c1", "status": "completed", "action": {"type": "wait"},
    "pending_safety_checks": [{"id": "sc1", "code": "x", "message": "y"}],
}  # fmt: skip
OUTPUT: Json = {
    "type": "computer_call_output", "call_id": "c1", "acknowledged_safety_checks": [{"id": "sc1"}],
    "output": {"type": "computer_screenshot", "image_url": f"data:image/webp;base64,{WEBP}"},
}  # fmt: skip
RESPONSES: Json = {"tools": [PREVIEW], "truncation": "auto", "input": [{"role": "user", "content": "x"}, CALL, OUTPUT]}
DECIDED: Json = {"safety_decision": {"decision": "require_confirmation"}}
ANSWERED: Json = {
    "name": "click", "id": "g1", "response": {"output": "", "url": "u", "safety_acknowledgement": "true"},
    "parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}],
}  # fmt: skip
GENERATE: Json = {
    "tools": [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, {"functionDeclarations": [{"name": "bash"}]}],
    "contents": [
        {"role": "model", "parts": [{"functionCall": {"name": "click", "id": "g1", "args": DECIDED}}]},
        {"role": "user", "parts": [{"functionResponse": ANSWERED}]},
    ],
}
GOOD = {"messages": MESSAGES, "responses": RESPONSES, "generate": GENERATE}
WRONG: list[tuple[str, list[str | int], Any, str]] = [
    ("messages", ["tools", 0, "type"], "computer_20300101", "unknown tool type"),
    ("messages", ["tools", 0, "type"], "computer_20251124", "requires the beta header"),
    ("messages", ["tools", 0, "name"], "screen", "should be 'computer'"),
    ("messages", ["tools", 0, "display_width_px"], None, "display_width_px"),
    ("messages", ["tools", 0, "display_height_px"], True, "display_height_px"),
    ("messages", ["tools", 0, "enable_zoom"], True, "extra inputs"),
    ("messages", ["tools", 1, "name"], "computer", "extra inputs"),
    ("messages", ["tools", 1, "configs"], {"fly": {}}, "extra inputs"),
    ("messages", ["messages", 2, "content", 0, "is_error"], True, "must be type `text`"),
    ("messages", ["messages", 2, "content", 0, "toolset_name"], "computer", "toolset_name"),
    ("messages", ["messages", 1, "content", 0, "toolset_name"], "computer", "toolset_name"),
    ("messages", ["messages", 2, "content", 0, "tool_use_id"], "t2", "without a tool_use"),
    ("messages", ["messages", 2, "content"], [SOURCE], "without a tool_result"),
    ("messages", ["messages", 2, "content", 0, "content", 0, "text"], "", "non-empty"),
    ("messages", ["messages", 2, "content", 1, "source", "media_type"], "image/jpeg", "is no image/jpeg"),
    ("messages", ["messages", 2, "content", 1, "source", "data"], "#", "invalid base64"),
    ("responses", ["tools", 0, "type"], "computer_use", "unsupported value"),
    ("responses", ["tools", 0], {"type": "computer", "display_width": 1}, "extra inputs"),
    ("responses", ["tools", 0, "display_width"], "1280", "display_width"),
    ("responses", ["tools", 0, "environment"], "desktop", "environment"),
    ("responses", ["truncation"], "disabled", "truncation"),
    ("responses", ["input"], [CALL], "no tool output found"),
    ("responses", ["input"], [OUTPUT], "no computer call found"),
    ("responses", ["input", 2, "output"], "done", "computer_screenshot is required"),
    ("responses", ["input", 2, "output", "image_url"], None, "not supported"),
    ("responses", ["input", 2, "acknowledged_safety_checks"], [], "not acknowledged"),
    ("responses", ["input", 1, "pending_safety_checks"], [], "nobody asked about"),
    ("generate", ["tools", 0, "computerUse", "environment"], "DESKTOP", "not supported"),
    ("generate", ["contents", 1, "parts", 0, "functionResponse", "name"], "computer", "not those"),
    ("generate", ["contents", 1, "parts", 0, "functionResponse", "id"], "g2", "ids differ"),
    ("generate", ["contents", 1, "parts", 0, "functionResponse", "response"], {"url": "u"}, "not acknowledged"),
    ("generate", ["contents", 1, "parts", 0, "functionResponse", "response", "url"], None, "has a url"),
    ("generate", ["contents", 1, "parts", 0, "functionResponse", "parts", 0, "inline_data", "mime_type"], "image/gif",
     "not supported"),
    ("generate", ["contents", 1], {"role": "user", "parts": []}, "not those"),
    ("generate", ["contents"], GENERATE["contents"][:1], "without function responses"),
]  # fmt: skip


@pytest.mark.parametrize("kind", list(GOOD))
def test_a_right_request_is_let_in(kind: str) -> None:
    assert wrong(kind, GOOD[kind], BETA) is None


@pytest.mark.parametrize(("kind", "at", "value", "message"), WRONG)
def test_a_wrong_request_is_refused(kind: str, at: list[str | int], value: Any, message: str) -> None:
    body: Any = copy.deepcopy(GOOD[kind])
    holder = body
    for step in at[:-1]:
        holder = holder[step]
    holder[at[-1]] = value
    assert message in (wrong(kind, body, BETA) or "")


@pytest.mark.parametrize("kind", [*GOOD, "chat", "embeddings"])
def test_other_conversations_are_left_alone(kind: str) -> None:
    body = {**GOOD.get(kind, {}), "tools": [{"name": "bash", "type": "function"}]}
    assert wrong(kind, body, {}) is None

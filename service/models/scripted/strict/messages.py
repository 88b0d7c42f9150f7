"""Anthropic Messages: versions of the tool, their betas, results of tools."""

from collections.abc import Mapping
from typing import Any

from service.models.scripted.strict.wrong import check_picture, demand, only
from service.models.scripted.values import mapping, objects, text

_BETAS = {
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
}
_FIELDS = {"type", "name", "display_width_px", "display_height_px", "display_number", "cache_control"}
_TOOLSET = "computer_toolset_20260801"
_MEMBERS = {
    "cursor_position", "double_click", "hold_key", "key", "left_click", "left_click_drag", "left_mouse_down",
    "left_mouse_up", "middle_click", "mouse_move", "right_click", "screenshot", "scroll", "triple_click", "type", "wait",
    "zoom",
}  # fmt: skip


def check(body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Raises Wrong."""
    tools = [tool for tool in objects(body.get("tools")) if text(tool.get("type")).startswith("computer_")]
    if not tools:
        return
    named = {beta.strip() for beta in headers.get("anthropic-beta", "").split(",")}
    for n, tool in enumerate(tools):
        _check_tool(tool, named, f"tools.{n}")
    _check_results(objects(body.get("messages")))


def _check_tool(tool: Mapping[str, Any], betas: set[str], at: str) -> None:
    kind = text(tool.get("type"))
    if kind == _TOOLSET:
        only(tool, {"type", "configs", "cache_control"}, at)
        only(mapping(tool.get("configs")), _MEMBERS, f"{at}.configs")
        return
    demand(kind in _BETAS, f"{at}: unknown tool type {kind!r}")
    demand(_BETAS[kind] in betas, f"{at}: {kind} requires the beta header {_BETAS[kind]}")
    demand(tool.get("name") == "computer", f"{at}.name: input should be 'computer'")
    for side in ("display_width_px", "display_height_px"):
        size = tool.get(side)
        demand(type(size) is int and size >= 1, f"{at}.{side}: an integer of at least 1 is required")
    only(tool, _FIELDS | ({"enable_zoom"} if kind == "computer_20251124" else set()), at)


def _check_results(messages: list[dict[str, Any]]) -> None:
    waiting: dict[str, Mapping[str, Any]] = {}
    for n, message in enumerate(messages):
        at, blocks = f"messages.{n}", objects(message.get("content"))
        for block in blocks:
            if block.get("type") == "tool_result":
                call = waiting.pop(text(block.get("tool_use_id")), None)
                demand(call is not None, f"{at}: tool_result without a tool_use in the message before")
                _check_result(block, mapping(call), at)
            elif block.get("type") == "image":
                _check_image(block, at)
        demand(not waiting, f"{at}: tool_use without a tool_result in the next message: {', '.join(waiting)}")
        waiting = {text(block.get("id")): block for block in blocks if block.get("type") == "tool_use"}


def _check_result(block: Mapping[str, Any], call: Mapping[str, Any], at: str) -> None:
    same = block.get("toolset_name") == call.get("toolset_name")
    demand(same, f"{at}: toolset_name is not that of the tool_use")
    for part in objects(block.get("content")):
        kind = part.get("type")
        only_text = block.get("is_error") is not True or kind == "text"
        demand(only_text, f"{at}: all content must be type `text` if `is_error` is true")
        demand(kind != "text" or text(part.get("text")), f"{at}: text content blocks must be non-empty")
        if kind == "image":
            _check_image(part, at)


def _check_image(block: Mapping[str, Any], at: str) -> None:
    source = mapping(block.get("source"))
    if source.get("type") == "base64":
        check_picture(source.get("media_type"), source.get("data"), at)

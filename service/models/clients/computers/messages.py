"""Anthropic: one tool whose input names the action, or (since August 2026) a set of tools, one per action."""

from collections.abc import Mapping
from typing import Any

from service.models.clients.computers.native import NAME, TOOLSET, computer_call
from service.models.clients.reaching import tool_call
from service.models.messages import ComputerTool, ToolCall, ToolResult

_BETAS: Mapping[str, str] = {
    "anthropic.20241022": "computer-use-2024-10-22",
    "anthropic.20250124": "computer-use-2025-01-24",
    "anthropic.20251124": "computer-use-2025-11-24",
}
_WITH_ZOOM = "anthropic.20251124"
_SET = "computer"
"""``toolset_name`` of the set's calls and results."""


def beta(tool: ComputerTool | None) -> str | None:
    """Return the beta that the request has to name."""
    return _BETAS.get(tool.vocabulary) if tool is not None else None


def entry(tool: ComputerTool) -> dict[str, Any]:
    """Return the request's entry of ``tools``."""
    kind = tool.vocabulary.removeprefix("anthropic.")
    if tool.vocabulary == TOOLSET:  # coordinates are those of the pictures, so that no size is told
        return {"type": kind} | ({} if tool.zoom else {"configs": {"zoom": {"enabled": False}}})
    made = {
        "type": f"computer_{kind}",
        "name": NAME,
        "display_width_px": tool.width,
        "display_height_px": tool.height,
    }
    return made | ({"enable_zoom": True} if tool.zoom and tool.vocabulary == _WITH_ZOOM else {})


def is_call(block: Mapping[str, Any], tool: ComputerTool | None) -> bool:
    """Tell whether a ``tool_use`` is the computer tool's. A member's name alone says nothing: it may be a function's."""
    if tool is None:
        return False
    if tool.vocabulary == TOOLSET:
        return block.get("toolset_name") == _SET
    return block.get("name") == NAME


def call(block: Mapping[str, Any], written: str, tool: ComputerTool) -> tuple[ToolCall, dict[str, Any]]:
    """Return the call, and its input as it is given back."""
    plain = tool_call(str(block["id"]), NAME, written)
    arguments = plain.arguments
    if arguments is not None and tool.vocabulary == TOOLSET:
        arguments = {**arguments, "action": str(block["name"])}
    return computer_call(plain.id, arguments, tool.vocabulary, raw=plain.raw), plain.arguments or {}


def of_set(one: ToolResult) -> dict[str, str]:
    """Return what the result of a set's member says besides."""
    return {"toolset_name": _SET} if one.vocabulary == TOOLSET else {}

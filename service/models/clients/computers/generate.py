"""Gemini: the predefined functions of its computer tool are called like any other function."""

from collections.abc import Mapping
from typing import Any

from service.domain.models import Dialect
from service.models.clients.computers.native import GEMINI_LEGACY, NATIVE, computer_call
from service.models.clients.reaching import inner
from service.models.messages import Answer, Ask, ComputerTool, ToolCall, ToolResult

_BROWSER, _DESKTOP = "ENVIRONMENT_BROWSER", "ENVIRONMENT_DESKTOP"
URL_UNKNOWN = "(not known)"
"""The API wants the page's address with each result of a browser's; the pictures show it where it matters."""


def entry(tool: ComputerTool) -> dict[str, Any]:
    """Return the request's entry of ``tools``. The older models know browsers only."""
    return {"computerUse": {"environment": _BROWSER if in_browser(tool) else _DESKTOP}}


def in_browser(tool: ComputerTool) -> bool:
    return tool.vocabulary == GEMINI_LEGACY or tool.environment == "browser"


def is_call(name: str, ask: Ask) -> bool:
    """Tell whether a function is one of the computer tool's: whatever is not offered beside it."""
    return ask.computer is not None and all(name != offered.name for offered in ask.tools)


def call(id: str, found: Mapping[str, Any], vocabulary: str) -> ToolCall:
    return computer_call(id, {"name": str(found["name"]), "args": inner(found, "args")}, vocabulary)


def is_result(one: ToolResult) -> bool:
    return one.vocabulary in NATIVE[Dialect.GEMINI]


def names(answer: Answer | None) -> dict[str, str]:
    """Return which predefined function each of an answer's calls was: results name it again."""
    calls = answer.calls if answer is not None else []
    return {c.id: str((c.arguments or {}).get("name", c.name)) for c in calls if c.vocabulary is not None}


def result(one: ToolResult, name: str, tool: ComputerTool | None) -> dict[str, Any]:
    """Return the ``functionResponse``, without an id."""
    response: dict[str, Any] = {"error" if one.is_error else "output": one.text}
    if tool is not None and in_browser(tool):
        response["url"] = URL_UNKNOWN
    if one.acknowledged:
        response["safety_acknowledgement"] = "true"
    pictures = [{"inlineData": {"mimeType": image.media_type, "data": image.data}} for image in one.images]
    return {"name": name, "response": response} | ({"parts": pictures} if pictures else {})

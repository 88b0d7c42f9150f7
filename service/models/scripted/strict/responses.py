"""OpenAI Responses: both computer tools, and that each call is answered by a picture."""

from collections.abc import Mapping
from typing import Any

from service.models.scripted.strict.wrong import check_picture, demand, only
from service.models.scripted.values import mapping, objects, text

_PREVIEW = "computer_use_preview"
_ENVIRONMENTS = ("windows", "mac", "linux", "ubuntu", "browser")


def check(body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Raises Wrong."""
    del headers
    tools = [tool for tool in objects(body.get("tools")) if text(tool.get("type")).startswith("computer")]
    for n, tool in enumerate(tools):
        _check_tool(tool, body, f"tools[{n}]")
    if tools:
        _check_items(objects(body.get("input")))


def _check_tool(tool: Mapping[str, Any], body: Mapping[str, Any], at: str) -> None:
    kind = tool.get("type")
    demand(kind in ("computer", _PREVIEW), f"{at}.type: unsupported value {kind!r}")
    if kind == "computer":
        only(tool, {"type"}, at)
        return
    for side in ("display_width", "display_height"):
        size = tool.get(side)
        demand(type(size) is int and size >= 1, f"{at}.{side}: an integer is required")
    demand(tool.get("environment") in _ENVIRONMENTS, f"{at}.environment: one of {', '.join(_ENVIRONMENTS)}")
    demand(body.get("truncation") == "auto", "truncation: this model requires 'auto'")


def _check_items(entries: list[dict[str, Any]]) -> None:
    waiting: dict[str, Mapping[str, Any]] = {}
    for n, entry in enumerate(entries):
        at = f"input[{n}]"
        if entry.get("type") == "computer_call":
            waiting[text(entry.get("call_id"))] = entry
        elif entry.get("type") == "computer_call_output":
            call = waiting.pop(text(entry.get("call_id")), None)
            demand(call is not None, f"{at}: no computer call found for call_id {entry.get('call_id')!r}")
            _check_output(entry, mapping(call), at)
    demand(not waiting, f"no tool output found for computer call {', '.join(waiting)}")


def _check_output(entry: Mapping[str, Any], call: Mapping[str, Any], at: str) -> None:
    output = mapping(entry.get("output"))
    demand(output.get("type") == "computer_screenshot", f"{at}.output: a computer_screenshot is required")
    scheme, _, data = text(output.get("image_url")).partition(";base64,")
    check_picture(scheme.removeprefix("data:"), data, f"{at}.output.image_url")
    pending = {text(check.get("id")) for check in objects(call.get("pending_safety_checks"))}
    confirmed = {text(check.get("id")) for check in objects(entry.get("acknowledged_safety_checks"))}
    demand(pending <= confirmed, f"{at}: safety checks were not acknowledged: {', '.join(pending - confirmed)}")
    demand(confirmed <= pending, f"{at}: safety checks that nobody asked about: {', '.join(confirmed - pending)}")

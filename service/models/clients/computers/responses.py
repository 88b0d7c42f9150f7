"""OpenAI Responses. The answer to a ``computer_call`` is a picture and nothing else: what is to be said beside it goes
into a message of the user's after the answers (not a developer's: it may quote what is on the screen)."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.models import Dialect
from service.models.clients.computers.native import COMPUTER, NATIVE, PREVIEW, computer_call, safety_checks
from service.models.clients.reaching import listed
from service.models.messages import ComputerTool, Image, ToolCall, ToolResult

CALL, OUTPUT = "computer_call", "computer_call_output"
NO_PICTURE = Image(
    media_type="image/png",
    data="iVBORw0KGgoAAAANSUhEUgAAAaQAAAA4AQAAAACa5LEUAAABmElEQVR42u2VMWvbQBiGH0nG1mCwsnmzt64au7TSLwmis4dMJYQGCTJkKqT5A9VP6B9wsLdkSZ0tgRCsqR6Kk2KBpYvuroMMTSITGlM6BH3L3Xd3D+99x8t9sFGE+uUxNTeSqqmaqqn/SamNqAX4D3N/LSUjH5DoqFxZrj1X0RptXpf1UiqgwZf9/P1nuXjX1/aVPk2wcRLRcxJhk2Cf/YqqWvojy/j+ww5q+E39fGO8nYcDfTkPty/n4YB5OLhfPqmiAa46wI5S9wZDdGUT2DoZqvbFaCwuRmO2Tobns6CqJc3IcWeAmSIsoC+hHRuC2IC+xJ5U6+qWM/fxRvTc25rQ/pPl/XLUtnkE0hmXCUn0nDdaWTkaysjAKrwRYCh60wrVXHuJ67/z4QRgtkoEDj5paS4BcYWyLBXdTbpQ0KYpS6dIApoEK9u4eVXL3CeLi8nxLmpmCTiFPdJbX6e3PsAeWfy0VxbKs/TRp8zrNBZFT7V+6EPPa6nONFedaZ5rz2t9v9t93CtXHfbrK+2wQf331lRN/fv4DbxjCFK/ualSAAAAAElFTkSuQmCC",
)
"""A card with the words "No picture of the screen here.": an empty picture would be taken for an empty screen."""


def entry(tool: ComputerTool) -> dict[str, Any]:
    """Return the request's entry of ``tools``."""
    if tool.vocabulary == COMPUTER:
        return {"type": "computer"}
    return {
        "type": "computer_use_preview",
        "display_width": tool.width,
        "display_height": tool.height,
        "environment": "browser" if tool.environment == "browser" else "linux",
    }


def settings(tool: ComputerTool) -> dict[str, Any]:
    """Return what else the request has to say: the preview model refuses to work without truncation."""
    return {"truncation": "auto"} if tool.vocabulary == PREVIEW else {}


def call(item: Mapping[str, Any], vocabulary: str) -> ToolCall:
    """Return a ``computer_call``; what has neither form of action becomes a call without one."""
    form = next((key for key in ("actions", "action") if item.get(key)), None)
    arguments = {} if form is None else {form: item[form]}
    return computer_call(
        str(item["call_id"]), arguments, vocabulary, safety_checks(listed(item, "pending_safety_checks"))
    )


def is_result(one: ToolResult) -> bool:
    return one.vocabulary in NATIVE[Dialect.OPENAI]


def result(one: ToolResult) -> dict[str, Any]:
    """Return the answer to a call: its last picture."""
    shown = one.images[-1] if one.images else NO_PICTURE
    checks = [{key: value for key, value in c.model_dump().items() if value} for c in one.acknowledged]
    return {
        "type": OUTPUT,
        "call_id": one.id,
        "output": {"type": "computer_screenshot", "image_url": data_url(shown)},
        **({"acknowledged_safety_checks": checks} if checks else {}),
    }


def remarks(results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """Return the message that says what the pictures do not; none where there is nothing to say."""
    parts: list[dict[str, Any]] = []
    for one in results:
        if one.text.strip():
            told = "failed" if one.is_error else "says"
            parts.append({"type": "input_text", "text": f"Computer call {one.id} {told}: {one.text}"})
        parts += [{"type": "input_image", "image_url": data_url(i), "detail": "auto"} for i in one.images[:-1]]
    return [{"role": "user", "content": parts}] if parts else []


def data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.data}"

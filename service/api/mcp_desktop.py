"""The tools of a run's MCP server that act on its screen; pictures are image content."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.api.desktop_view import DesktopActed, DesktopRequest
from service.api.drive_desktop import ACT, LOOK, act
from service.api.driving import Driven
from service.api.mcp_contract import Answered, Tool
from service.domain.desktop import Shot


class ScreenshotArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    format: Literal["png", "webp", "jpeg"] = "png"
    quality: Annotated[int, Field(ge=1, le=100)] = 75
    """Of jpeg."""
    cursor: bool = True
    """With the mouse pointer."""


async def _act(driven: Driven, given: DesktopRequest) -> Answered:
    return _said(await act(driven, given, ACT))


async def _look(driven: Driven, given: ScreenshotArguments) -> Answered:
    shot = Shot(format=given.format, quality=given.quality, cursor=given.cursor)
    return _said(await act(driven, DesktopRequest(settle=None, screenshot=shot), LOOK))


def _said(acted: DesktopActed) -> Answered:
    failed = next((f"action {r.index}: {r.error}: {r.detail}" for r in acted.results if r.error), None)
    state = acted.state
    lines = [
        *([f"{acted.error}: {acted.detail}"] if acted.error else []),
        *([failed] if failed else []),
        *(f"action {r.index}: {r.text}" for r in acted.results if r.text),
        *([f"screen {state.width}x{state.height}, window {state.title!r}"] if state else []),
        *(f"window {w.title!r}{' (active)' if w.active else ''}" for w in (state.windows if state else ())),
    ]
    shown = [*acted.images, *([acted.screenshot] if acted.screenshot else [])]
    images = [(f"image/{picture.format}", picture.data_base64) for picture in shown if picture.data_base64]
    without = {"screenshot": {"data_base64"}, "images": {"__all__": {"data_base64"}}}
    data = acted.model_dump(mode="json", exclude=without)
    return Answered("\n".join(lines), data, bool(acted.error or failed), images)


DESKTOP_TOOLS = {
    ACT: Tool("Do actions on the screen, in order, and see how it is afterwards.", DesktopRequest, _act),
    LOOK: Tool("See the screen.", ScreenshotArguments, _look),
}

"""Pictures in a conversation: as references while it is kept, as images only in a request that is sent.

So a successor that goes through the journal again opens none of those that nobody will see.
"""

from collections.abc import Sequence
from typing import Literal

from service.domain.desktop import Picture
from service.models.messages import Image, ResultsTurn, ToolResult, Turn, UserTurn
from service.scaffolds.loops import LoopDesktop

_MARK = "picture:"
"""No base64 begins so."""


_TYPES: dict[str, Literal["image/png", "image/webp", "image/jpeg"]] = {
    "png": "image/png", "webp": "image/webp", "jpeg": "image/jpeg",
}  # fmt: skip


def reference(picture: Picture) -> Image:
    return Image(media_type=_TYPES[picture.format], data=f"{_MARK}{picture.model_dump_json()}")


async def shown(turns: Sequence[Turn], desktop: LoopDesktop) -> list[Turn]:
    """Return the turns as a model is sent them. Raises Unavailable."""
    return [await _shown(turn, desktop) for turn in turns]


async def _shown(turn: Turn, desktop: LoopDesktop) -> Turn:
    if isinstance(turn, UserTurn):
        return turn.model_copy(update={"images": await _images(turn.images, desktop)}) if turn.images else turn
    if isinstance(turn, ResultsTurn):
        return ResultsTurn(results=[await _result(one, desktop) for one in turn.results])
    return turn


async def _result(one: ToolResult, desktop: LoopDesktop) -> ToolResult:
    return one.model_copy(update={"images": await _images(one.images, desktop)}) if one.images else one


async def _images(images: Sequence[Image], desktop: LoopDesktop) -> list[Image]:
    return [await _image(one, desktop) for one in images]


async def _image(one: Image, desktop: LoopDesktop) -> Image:
    if not one.data.startswith(_MARK):
        return one
    return await desktop.show(Picture.model_validate_json(one.data.removeprefix(_MARK)))

"""What the last picture of a request shows, for steps that come when something is on the screen."""

import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from service.domain.errors import Invalid
from service.models.scripted.scenario import Pixel
from service.models.scripted.values import from_base64

_FIRST_BYTES = ("iVBORw0KGgo", "UklGR", "/9j/", "_9j_")
"""Of PNG, WebP and JPEG, in base64 of either alphabet."""


def shows(body: Mapping[str, Any], pixels: Sequence[Pixel]) -> bool:
    """Tell whether the request's last picture has these colours; without any it has. Raises Invalid: it cannot be read here."""
    if not pixels:
        return True
    data = next(_pictures(body), None)
    if data is None:
        return False
    try:
        opened = importlib.import_module("PIL.Image").open
    except ImportError as error:
        raise Invalid("pillow_missing", "scenarios that look at pictures need the package pillow") from error
    try:
        with opened(io.BytesIO(from_base64(data))) as picture:
            seen = picture.convert("RGB")
    except (OSError, ValueError) as error:
        raise Invalid("bad_picture", f"the last picture cannot be read: {error}") from error
    return all(_near(seen, pixel) for pixel in pixels)


def _near(seen: Any, pixel: Pixel) -> bool:
    if pixel.x >= seen.width or pixel.y >= seen.height:
        return False
    return all(abs(a - b) <= pixel.within for a, b in zip(seen.getpixel((pixel.x, pixel.y)), pixel.rgb, strict=True))


def _pictures(value: object) -> Iterator[str]:
    """Yield the pictures below ``value``, the last one first."""
    if isinstance(value, str):
        data = value.partition(";base64,")[2] if value.startswith("data:") else value
        if data.startswith(_FIRST_BYTES):
            yield data
    elif isinstance(value, Mapping):
        for one in reversed(list(cast("Mapping[str, object]", value).values())):
            yield from _pictures(one)
    elif isinstance(value, list):
        for one in reversed(cast("list[object]", value)):
            yield from _pictures(one)

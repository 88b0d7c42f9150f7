"""Pictures as the host wants them. Pure."""

import io
from dataclasses import dataclass
from typing import Final

from faults import Failed
from PIL import Image

MOST_BYTES: Final = 8 << 20
MOST_SIDE: Final = 4096
FORMATS: Final = ("png", "webp", "jpeg")
Size = tuple[int, int]


@dataclass(frozen=True)
class Format:
    name: str = "webp"
    """``png`` and ``webp`` are lossless."""
    quality: int = 75
    """Of ``jpeg``."""


@dataclass(frozen=True)
class Encoded:
    format: str
    size: Size
    data: bytes


def encode(picture: Image.Image, form: Format) -> Encoded:
    """Raises Failed ``too_large``. The settings are the fastest that lose nothing: 25 ms for 1280x800, of JPEG 4 ms."""
    out = io.BytesIO()
    if form.name == "png":
        picture.save(out, "PNG", compress_level=1)
    elif form.name == "jpeg":
        picture.save(out, "JPEG", quality=form.quality)
    else:
        picture.save(out, "WEBP", lossless=True, quality=0, method=0)
    data = out.getvalue()
    if len(data) > MOST_BYTES:
        raise Failed("too_large", f"the picture has {len(data)} bytes as {form.name}, at most {MOST_BYTES} are sent")
    return Encoded(form.name, picture.size, data)


def scaled(picture: Image.Image, size: Size | None) -> Image.Image:
    if size is None or size == picture.size:
        return picture
    larger = size[0] >= picture.width and size[1] >= picture.height
    how = Image.Resampling.BICUBIC if larger else Image.Resampling.LANCZOS
    return picture.resize(size, how)  # pyright: ignore[reportUnknownMemberType] - numpy, of which it knows nothing


def fitting(part: Size, screen: Size) -> Size:
    """Return the largest size of ``part``'s shape that fits ``screen``."""
    factor = min(screen[0] / part[0], screen[1] / part[1])
    return max(1, min(screen[0], round(part[0] * factor))), max(1, min(screen[1], round(part[1] * factor)))

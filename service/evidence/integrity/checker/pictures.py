"""Images, by Pillow: every pixel of every frame is decoded once, unless there are too many."""

import warnings
from pathlib import Path

from PIL import Image, ImageFile

from service.evidence.integrity.checker.findings import Seen, Trouble

MAX_PIXELS = 150_000_000
"""Of one frame; 4 bytes each must fit into a reader's memory."""
MAX_TOTAL_PIXELS = 1_000_000_000
MAX_FRAMES = 500
FLOOD_RATIO = 100
"""More pixels per byte than this are a flood, fewer are a large picture."""
_FORMATS = {
    "png": "PNG", "jpeg": "JPEG", "gif": "GIF", "webp": "WEBP", "bmp": "BMP", "tiff": "TIFF", "psd": "PSD", "ico": "ICO",
}  # fmt: skip

warnings.simplefilter("ignore")
Image.MAX_IMAGE_PIXELS = None  # ours is checked before anything is decoded
ImageFile.LOAD_TRUNCATED_IMAGES = False


def read_picture(path: Path, kind: str) -> Seen:
    with path.open("rb") as file, _opened(file, kind) as image:
        seen = Seen({"width": image.width, "height": image.height})
        pixels = image.width * image.height
        if pixels > MAX_PIXELS:
            flood = pixels > FLOOD_RATIO * path.stat().st_size
            raise Trouble("bomb" if flood else "too_large_to_check", f"{image.width} x {image.height} pixels")
        seen.facts["frames"] = _decode(image, pixels)
    if kind in ("png", "gif"):
        _check_end(path, kind)
    return seen


def _opened(file: object, kind: str) -> Image.Image:
    try:
        return Image.open(file, formats=[_FORMATS[kind]])  # pyright: ignore[reportArgumentType]
    except OSError as error:
        raise Trouble("cannot_open", f"not a readable {kind}") from error


def _decode(image: Image.Image, pixels: int) -> int:
    frame = 0
    while True:
        try:
            image.load()
        except (OSError, EOFError) as error:
            words = str(error)
            cut = "truncated" in words or "unexpected end" in words or not words
            raise Trouble(
                "truncated" if cut else "cannot_open", f"frame {frame + 1}: {words or 'ends too early'}"
            ) from error
        frame += 1
        if frame >= MAX_FRAMES or frame * pixels > MAX_TOTAL_PIXELS:
            return frame
        try:
            image.seek(frame)
        except EOFError:
            return frame


def _check_end(path: Path, kind: str) -> None:
    """Pillow forgives a missing end when all pixels are there."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 4096))
        tail = file.read()
    if (b"IEND" if kind == "png" else b";") not in tail:
        raise Trouble("truncated", "the end mark is missing")

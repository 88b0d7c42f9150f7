"""Pictures of the document: decoded, turned as they are meant to be seen, made smaller, encoded anew without their metadata."""

import io
import warnings
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from PIL import Image, ImageFile, ImageOps

from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.pictures import FLOOD_RATIO, MAX_PIXELS

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PSD", "ICO", "PPM", "TGA", "PCX", "DDS")
PNG_MOST = 1 << 20
"""Bytes beyond which a picture is a photo and becomes a JPEG."""
QUALITY = 85
warnings.simplefilter("ignore")


@dataclass(frozen=True, slots=True)
class Picture:
    label: str
    source: str
    media_type: str
    width: int
    height: int
    data: bytes
    sha256: str


def normalised(label: str, source: str, content: bytes | Path, longest: int) -> Picture:
    """Return the first frame, its longest side at most ``longest`` pixels. Raises Trouble."""
    try:
        with Image.open(io.BytesIO(content) if isinstance(content, bytes) else content, formats=FORMATS) as image:
            return encoded(label, source, shrunk(image, _size(content), longest))
    except (OSError, EOFError, ValueError, SyntaxError, ArithmeticError) as error:
        raise Trouble("cannot_open", str(error)[:200]) from error


def shrunk(image: Image.Image, packed_bytes: int, longest: int) -> Image.Image:
    """Decode what is open; nothing is decoded of a flood. Raises Trouble, and what Pillow raises."""
    pixels = image.width * image.height
    if pixels > MAX_PIXELS:
        kind = "bomb" if pixels > FLOOD_RATIO * packed_bytes else "too_large"
        raise Trouble(kind, f"{image.width} x {image.height} pixels")
    image.draft("RGB", (longest, longest))
    made = image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGBA" if _has_alpha(image) else "RGB")
    made = ImageOps.exif_transpose(made)
    made.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return made


def encoded(label: str, source: str, image: Image.Image) -> Picture:
    """Return it as PNG, or as JPEG where that would be large."""
    buffer, media_type = io.BytesIO(), "image/png"
    bare = Image.frombytes(image.mode, image.size, image.tobytes())
    bare.save(buffer, "PNG")
    if buffer.tell() > PNG_MOST:
        buffer, media_type = io.BytesIO(), "image/jpeg"
        _on_white(bare).save(buffer, "JPEG", quality=QUALITY)
    data = buffer.getvalue()
    return Picture(label, source, media_type, image.width, image.height, data, sha256(data).hexdigest())


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


ImageFile.LOAD_TRUNCATED_IMAGES = False

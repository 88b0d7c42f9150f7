"""Pictures: themselves, made smaller and encoded anew; their facts; what is written in their metadata."""

from pathlib import Path
from typing import cast

from PIL import ExifTags, Image

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.pictures import FORMATS, normalised
from service.evidence.integrity.checker.findings import Trouble

FRAMES = 4
"""Most frames of an animation or pages of a tiff that are shown."""
_MAX_VALUE = 20_000


def read_image(path: Path, out: Output) -> None:
    first = normalised("", "file", path, out.caps.image_pixels)
    try:
        with Image.open(path, formats=FORMATS) as image:
            out.fact("format", image.format or "")
            out.fact("width", image.width)
            out.fact("height", image.height)
            out.fact("mode", image.mode)
            frames = int(getattr(image, "n_frames", 1))
            out.fact("frames", frames)
            out.part("metadata", "", _metadata(image))
            if frames <= 1:
                out.pictures.append(first)
                return
            _frames(image, frames, out)
    except (OSError, EOFError, ValueError, SyntaxError) as error:
        raise Trouble("cannot_open", str(error)[:200]) from error


def _frames(image: Image.Image, frames: int, out: Output) -> None:
    shown = sorted({round(n * (frames - 1) / (FRAMES - 1)) for n in range(FRAMES)})
    for frame in shown:
        image.seek(frame)
        piece = out.scratch / f"frame{frame}.png"
        image.convert("RGBA").save(piece, "PNG")
        out.picture(f"frame {frame + 1} of {frames}", "frame", piece)
    out.omit(images=frames - len(shown))


def _metadata(image: Image.Image) -> str:
    """Return what somebody may have written into it: EXIF, XMP, comments, text chunks."""
    lines: list[str] = []
    exif = image.getexif()
    for group in (exif, exif.get_ifd(ExifTags.IFD.Exif), exif.get_ifd(ExifTags.IFD.GPSInfo)):
        for tag, value in group.items():
            name = ExifTags.TAGS.get(tag, f"tag {tag}")
            lines.append(f"{name}: {_words(value)}")
    for name, value in cast("dict[object, object]", image.info).items():
        if isinstance(value, str | bytes) and name not in ("icc_profile", "exif", "photoshop"):
            lines.append(f"{name}: {_words(value)}")
    return "\n".join(line for line in lines if not line.endswith(": "))


def _words(value: object) -> str:
    if isinstance(value, bytes):
        # Windows writes comments in UTF-16, EXIF begins some with the name of a character set.
        coded = value.removeprefix(b"ASCII\0\0\0").removeprefix(b"UNICODE\0")
        wide = len(coded) >= 4 and coded[1::2].count(0) > len(coded) // 4
        text = coded.decode("utf-16-le" if wide else "utf-8", "replace")
        value = text if sum(c.isprintable() for c in text) * 2 > len(text) else f"{len(value)} bytes"
    return str(value).replace("\0", "").strip()[:_MAX_VALUE]

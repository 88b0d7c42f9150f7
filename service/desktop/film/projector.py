"""Runs in a room, alone, with the image's Python: stills to a piece of film, pieces to one.

``projector.py piece N`` reads ``{"width", "height", "fps", "captions": […]}`` from standard input and the stills
``in/0``, ``in/1`` … of which it leaves none; ``projector.py join N BYTES`` makes ``film.mp4`` of N pieces. What is no
picture is left out and counted. One line of JSON tells what was done.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from PIL import Image, ImageDraw, ImageFont

FFMPEG = "/opt/media/bin/ffmpeg"
LIBRARIES = {"LD_LIBRARY_PATH": "/opt/media/lib"}
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
STRIP = 24
"""Height of the caption, pixels."""
MAX_PIXELS = 4096 * 4096
BACKGROUND, INK = (24, 24, 27), (228, 228, 231)
warnings.simplefilter("ignore")
Image.MAX_IMAGE_PIXELS = None  # ours is checked before anything is decoded


def piece(number: int, wanted: dict[str, Any]) -> dict[str, int]:
    """Return {shown, skipped}."""
    captions = cast(Sequence[str], wanted["captions"])
    width, height = int(wanted["width"]), int(wanted["height"])
    with subprocess.Popen(
        [*_ffmpeg("-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", f"{width}x{height}"),
         "-framerate", str(wanted["fps"]), "-i", "-", "-c:v", "libx264", "-preset", "veryfast", "-crf", "28",
         "-pix_fmt", "yuv420p", "-threads", "2", "-f", "mpegts", f"{number}.ts"],
        stdin=subprocess.PIPE, env=LIBRARIES,
    ) as coder:  # fmt: skip
        shown = _feed(cast(IO[bytes], coder.stdin), _frames(captions, (width, height)))
    if coder.returncode != 0 and shown:
        raise SystemExit(f"ffmpeg: {coder.returncode}")
    return {"shown": shown, "skipped": len(captions) - shown}


def join(count: int, most_bytes: int) -> dict[str, int]:
    """Return {bytes}."""
    pieces = [f"{n}.ts" for n in range(count) if Path(f"{n}.ts").is_file() and Path(f"{n}.ts").stat().st_size]
    Path("pieces.txt").write_text("".join(f"file '{name}'\n" for name in pieces))
    argv = _ffmpeg("-f", "concat", "-safe", "0", "-i", "pieces.txt", "-c", "copy", "-fs", str(most_bytes))
    subprocess.run([*argv, "-movflags", "+faststart", "film.mp4"], env=LIBRARIES, check=True)
    return {"bytes": Path("film.mp4").stat().st_size}


def _ffmpeg(*arguments: str) -> list[str]:
    return [FFMPEG, "-v", "error", "-y", "-protocol_whitelist", "file,pipe", *arguments]


def _feed(to: IO[bytes], frames: Iterator[bytes]) -> int:
    shown = 0
    for frame in frames:
        to.write(frame)
        shown += 1
    to.close()
    return shown


def _frames(captions: Sequence[str], size: tuple[int, int]) -> Iterator[bytes]:
    font = ImageFont.truetype(FONT, 13) if Path(FONT).is_file() else ImageFont.load_default()
    for number, caption in enumerate(captions):
        path = Path(f"in/{number}")
        still = _opened(path)
        path.unlink(missing_ok=True)
        if still is not None:
            yield _framed(still, caption, size, font)


def _opened(path: Path) -> Image.Image | None:
    try:
        with Image.open(path, formats=["PNG", "WEBP", "JPEG"]) as image:
            return image.convert("RGB") if image.width * image.height <= MAX_PIXELS else None
    # What a decoder makes of foreign bytes is not enumerable: the still is left out, whatever it was.
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, OverflowError, Image.DecompressionBombError):
        return None


def _framed(still: Image.Image, caption: str, size: tuple[int, int], font: Any) -> bytes:
    width, height = size
    room = height - (STRIP if caption else 0)
    if still.width > width or still.height > room:
        still.thumbnail((width, room))
    frame = Image.new("RGB", size, BACKGROUND)
    frame.paste(still, ((width - still.width) // 2, (room - still.height) // 2))
    if caption:
        ImageDraw.Draw(frame).text((8, room + 4), _drawable(caption, font), fill=INK, font=font)
    return frame.tobytes()


def _drawable(caption: str, font: Any) -> str:
    """The font that is always there has Latin letters only."""
    return caption if hasattr(font, "path") else caption.encode("latin-1", "replace").decode("latin-1")


def main(arguments: Sequence[str]) -> None:
    done = (
        piece(int(arguments[1]), json.load(sys.stdin))
        if arguments[0] == "piece"
        else join(int(arguments[1]), int(arguments[2]))
    )
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main(sys.argv[1:])

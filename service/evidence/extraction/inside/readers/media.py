"""Sound and film: what ffprobe says of it, and a few frames."""

import json
import math
from pathlib import Path
from typing import Any, cast

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.programs import run

FRAMES = 6
FRAME_S, PROBE_S = 12.0, 30.0
_RESERVE_S = 5.0
_BIN, _LIB = "/opt/media/bin", "/opt/media/lib"
_LOCAL = ("-v", "error", "-protocol_whitelist", "file")
"""A playlist cannot lead anywhere."""
_FACTS = {
    "audio": ("codec_name", "sample_rate", "channels", "bit_rate"),
    "video": ("codec_name", "width", "height", "avg_frame_rate", "bit_rate"),
    "subtitle": ("codec_name",),
}


def read_media(path: Path, out: Output) -> None:
    """Raises Failed ``cannot_open``, Trouble."""
    asked = [f"{_BIN}/ffprobe", *_LOCAL, "-of", "json", "-show_format", "-show_streams", "-show_chapters", path]
    done = run(asked, out.scratch, libraries=_LIB, timeout_s=PROBE_S)
    found = _object(done.stdout)
    streams = [s for s in _list(found.get("streams")) if s.get("codec_type") in _FACTS]
    if done.code != 0 or not streams:
        raise Failed("cannot_open", done.complaint.replace(str(path), "the file") or "no sound and no picture in it")
    about: dict[str, Any] = found.get("format") or {}
    duration = _seconds(about.get("duration"))
    if duration:
        out.fact("duration_s", round(duration, 3))
    out.fact("container", str(about.get("format_name", ""))[:100])
    for number, stream in enumerate(streams[:8]):
        for name in _FACTS[stream["codec_type"]]:
            if name in stream:
                out.fact(f"{stream['codec_type']}{number}_{name}", str(stream[name])[:100])
    tags = [f"{k}: {v}"[:2000] for one in (about, *streams) for k, v in _tags(one).items()]
    chapters = _list(found.get("chapters"))
    tags += [f"chapter at {one.get('start_time')} s: {_tags(one).get('title', '')}" for one in chapters]
    out.part("metadata", "tags", "\n".join(tags[:500]))
    if any(s["codec_type"] == "video" for s in streams):
        _frames(path, duration, out)


def _frames(path: Path, duration: float, out: Output) -> None:
    """Give frames from the middles of equal stretches; of one without a length, the first."""
    many = FRAMES if duration else 1
    for number in range(many):
        if out.left_s < FRAME_S + _RESERVE_S:
            out.omit(images=many - number)
            break
        at, target = duration * (number + 0.5) / many, out.scratch / f"frame{number}.png"
        side = out.caps.image_pixels
        scale = f"scale='min({side},iw)':'min({side},ih)':force_original_aspect_ratio=decrease"
        try:
            run(
                [f"{_BIN}/ffmpeg", *_LOCAL, "-threads", "1", "-ss", f"{at:.3f}", "-i", path, "-an", "-frames:v", "1", "-vf", scale,
                 "-y", target], out.scratch, libraries=_LIB, timeout_s=FRAME_S,
            )  # fmt: skip
        except Trouble:
            out.note(f"no frame at {at:.1f} s within {FRAME_S:g} s")
        if target.is_file() and target.stat().st_size:
            out.picture(f"at {at:.1f} s", "frame", target)
        else:
            out.omit(images=1)


def _object(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _tags(one: dict[str, Any]) -> dict[str, Any]:
    found: object = one.get("tags")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _list(found: Any) -> list[dict[str, Any]]:
    return [one for one in cast("list[Any]", found) if isinstance(one, dict)] if isinstance(found, list) else []


def _seconds(text: object) -> float:
    try:
        found = float(str(text))
    except ValueError:
        return 0.0
    return found if math.isfinite(found) and 0 < found < 1e7 else 0.0

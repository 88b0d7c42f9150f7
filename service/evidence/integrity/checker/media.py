"""Sound and film, by ffmpeg: what is in it, whether its container is whole, and whether its end still decodes."""

import json
import math
import struct
from pathlib import Path
from typing import Any, BinaryIO

from service.evidence.integrity.checker.findings import Seen, Trouble
from service.evidence.integrity.checker.programs import Done, run

_BIN, _LIB = "/opt/media/bin", "/opt/media/lib"
_ENTRIES = "format=duration:stream=codec_type,codec_name,width,height"
_LOCAL = ("-v", "error", "-protocol_whitelist", "file")
"""A playlist cannot lead anywhere."""
WHOLE_S = 60.0
"""Up to this length everything is decoded, beyond it the last seconds."""
TAIL_S = 5
_CUT = ("moov atom not found", "partial file", "truncat", "End of file", "Packet corrupt", "EOF")


def read_media(path: Path, kind: str) -> Seen:
    probe = run(
        [f"{_BIN}/ffprobe", *_LOCAL, "-of", "json", "-show_entries", _ENTRIES, path], path.parent, libraries=_LIB
    )
    cut = _is_cut(path, kind)
    streams, duration = _parsed(probe)
    if probe.code != 0 or not streams:
        late = cut or any(word in probe.stderr for word in _CUT)
        raise Trouble("truncated" if late else "cannot_open", _words(probe, path) or "no sound and no picture in it")
    seen = Seen(_facts(streams, duration))
    if cut:
        seen.problems.append(("truncated", "the container goes on beyond the end of the file"))
        return seen
    decode = run(
        [f"{_BIN}/ffmpeg", *_LOCAL, "-threads", "1", *_from(duration), "-i", path, "-f", "null", "-"],
        path.parent,
        libraries=_LIB,
    )
    if decode.code != 0 or decode.stderr.strip():
        late = any(word in decode.stderr for word in _CUT)
        seen.problems.append(("truncated" if late else "malformed", _words(decode, path)))
    return seen


def _from(duration: float) -> list[str]:
    return [] if 0 < duration <= WHOLE_S else ["-sseof", f"-{TAIL_S}"] if duration else ["-t", f"{WHOLE_S:g}"]


def _words(done: Done, path: Path) -> str:
    return done.complaint.replace(str(path), "the file")


def _parsed(probe: Done) -> tuple[list[dict[str, Any]], float]:
    try:
        found = json.loads(probe.stdout or "{}")
    except ValueError:
        return [], 0.0
    streams = [s for s in found.get("streams", []) if s.get("codec_type") in ("audio", "video")]
    try:
        duration = float(found.get("format", {}).get("duration", 0))
    except (TypeError, ValueError):
        duration = 0.0
    return streams, duration if math.isfinite(duration) and duration > 0 else 0.0


def _facts(streams: list[dict[str, Any]], duration: float) -> dict[str, int | float | str]:
    facts: dict[str, int | float | str] = {"duration_s": round(duration, 3)} if duration else {}
    for stream in streams:
        facts.setdefault(f"{stream['codec_type']}_codec", str(stream.get("codec_name", "unknown"))[:64])
        if stream["codec_type"] == "video":
            facts |= {n: stream[n] for n in ("width", "height") if isinstance(stream.get(n), int) and n not in facts}
    return facts


def _is_cut(path: Path, kind: str) -> bool:
    """Whether the container says that it is longer than the file. ffmpeg plays what is there without a word."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        if kind in ("wav", "avi", "aiff"):
            head = file.read(8)
            length = struct.unpack("<I" if kind != "aiff" else ">I", head[4:])[0] if len(head) == 8 else 0
            return length != 0xFFFFFFFF and length + 8 > size  # a stream's writer does not know its length
        return kind == "mp4" and file.read(8)[4:] == b"ftyp" and _boxes_end_beyond(file, size)


def _boxes_end_beyond(file: BinaryIO, size: int) -> bool:
    at = 0
    for _ in range(10_000):
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            return bool(head)
        length = struct.unpack(">I", head[:4])[0]
        if length == 1 and len(head) == 16:
            length = struct.unpack(">Q", head[8:])[0]
        if length == 0:
            return False
        if length < 8:
            return True
        at += length
        if at >= size:
            return at > size
    return False

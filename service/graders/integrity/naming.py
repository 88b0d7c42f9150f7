"""Which files an instruction names, and whether a delivered path is the one meant."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from service.domain.paths import check_relative_path
from service.domain.tasks import TaskManifest

MOST_NAMED = 200
WORKSPACE = "/workspace/"
_EXTENSIONS = (
    "txt md rst csv tsv json jsonl xml yaml yml toml ini log html htm css svg pdf doc docx odt rtf tex xls xlsx xlsm ods ppt "
    "pptx odp png jpg jpeg gif webp bmp tif tiff psd ai eps mp3 wav flac ogg m4a mp4 mov webm avi mkv zip tar gz tgz 7z py "
    "ipynb js ts jsx tsx java c cpp h cs go rs rb php r sql sh swift kt scala db sqlite sqlite3 parquet geojson kml gpx shp "
    "glb gltf obj stl ply fbx dae blend step stp iges igs dwg dxf 3dm usdz ttf otf woff woff2 eml ics srt vtt bib"
)
EXTENSIONS = frozenset(_EXTENSIONS.split())
"""Of what people ask for by name. Other words with a dot in them are hosts, numbers and abbreviations."""
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S{1,2000}", re.IGNORECASE)
_QUOTED = re.compile(
    r"`([^`\n]{1,300})`|\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”|«([^»\n]{1,300})»|\*\*([^*\n]{1,300})\*\*"
)
_BARE = re.compile(r"[\w./+@-]{3,300}")


def named_files(task: TaskManifest) -> list[str]:
    """Return the files that the instruction asks for, in its order: names and paths, at most 200.

    A file that the task brings counts only where it is named at a place that is collected.
    """
    text = _URL.sub(_blank, unicodedata.normalize("NFC", task.instruction))
    quoted = [(m.start(), name) for m in _QUOTED.finditer(text) if (name := _clean(_inner(m))) is not None]
    rest = _QUOTED.sub(lambda m: m.group() if _clean(_inner(m)) is None else _blank(m), text)
    bare = [(m.start(), name) for m in _BARE.finditer(rest) if (name := _clean(m.group())) is not None]
    found = [name for _, name in sorted(quoted + bare)]
    given = {f.path for f in task.visible} | {f.path.rpartition("/")[2] for f in task.visible}
    return [n for n in dict.fromkeys(found) if n not in given or _collected(n, task.collect)][:MOST_NAMED]


def is_meant(path: str, pattern: str, roots: Sequence[str]) -> bool:
    """Tell whether a delivered path is what the pattern means: by name, by path, or by path below a collect root."""
    path, pattern = (unicodedata.normalize("NFC", text) for text in (path, pattern))
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return any(_same(path, f"{root}{pattern}") for root in ("", *(f"{root}/" for root in roots)))


def any_meant(path: str, patterns: Iterable[str], roots: Sequence[str]) -> bool:
    return any(is_meant(path, pattern, roots) for pattern in patterns)


def _same(path: str, pattern: str) -> bool:
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _blank(match: re.Match[str]) -> str:
    """As long as the match, so that places stay."""
    return " " * len(match.group())


def _inner(match: re.Match[str]) -> str:
    return next(m for m in match.groups() if m is not None)


def _clean(word: str) -> str | None:
    """Return the path that a word is, relative to the workspace, or None where it is none."""
    word = word.strip().rstrip(".").removeprefix(WORKSPACE).removeprefix("./")
    stem, dot, extension = word.rpartition(".")
    if not dot or extension.lower() not in EXTENSIONS or not stem.rpartition("/")[2].strip(". -"):
        return None
    if any(c in word for c in "*?[]<>{}|@"):
        return None
    try:
        return check_relative_path(word)
    except ValueError:
        return None


def _collected(name: str, roots: Sequence[str]) -> bool:
    return any(name.startswith(f"{root}/") for root in roots)

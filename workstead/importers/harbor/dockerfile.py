"""What a Dockerfile puts where: the working directory of its last stage and the files that it copies from its context."""

import json
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any, cast

_WORD = re.compile(r"([A-Za-z]+)\s+(.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Copy:
    sources: tuple[str, ...]
    """Of the build's context; empty where they come from elsewhere."""
    target: str
    """Absolute; ends with a slash where it names a folder."""
    why_not: str = ""
    """Why its files cannot be had from the context."""


@dataclass(slots=True)
class Dockerfile:
    workdir: str = "/"
    copies: list[Copy] = field(default_factory=list[Copy])
    runs: list[str] = field(default_factory=list[str])
    """Commands that run in a folder of the task, by their own word."""


def parse_dockerfile(text: str) -> Dockerfile:
    """Read the last stage. Instructions that say nothing of files are passed over; nothing raises."""
    found = Dockerfile()
    for word, rest in _instructions(text):
        if word == "FROM":
            found = Dockerfile()
        elif word == "WORKDIR":
            found.workdir = _absolute(found.workdir, rest.strip().strip("\"'"))
        elif word in ("COPY", "ADD"):
            found.copies.append(_copy(word, rest, found.workdir))
        elif word == "RUN":
            found.runs.append(rest[:2_000])
    return found


def _instructions(text: str) -> list[tuple[str, str]]:
    kept = "\n".join(line for line in text.replace("\r", "").split("\n") if not line.lstrip().startswith("#"))
    matches = (_WORD.match(line.strip()) for line in re.sub(r"\\[ \t]*\n", " ", kept).split("\n"))
    return [(match[1].upper(), match[2]) for match in matches if match]


def _copy(word: str, rest: str, workdir: str) -> Copy:
    parts = _words(rest)
    flags = [part for part in parts if part.startswith("--")]
    paths = [part for part in parts if not part.startswith("--")]
    target = _absolute(workdir, paths[-1]) if paths else workdir
    folder = bool(paths) and (paths[-1].endswith(("/", "/.")) or paths[-1] == "." or len(paths) > 2)
    target = target.rstrip("/") + "/" if folder else target
    sources = tuple(posixpath.normpath(source.lstrip("/") or ".") for source in paths[:-1])
    return Copy(sources, target, _why_not(word, flags, paths))


def _words(rest: str) -> list[str]:
    if rest.lstrip().startswith("["):
        try:
            value: Any = json.loads(rest)
        except (ValueError, RecursionError):
            return []
        return [part for part in cast("list[Any]", value) if isinstance(part, str)] if isinstance(value, list) else []
    return rest.split()


def _why_not(word: str, flags: list[str], paths: list[str]) -> str:
    if len(paths) < 2 or "<<" in "".join(paths):
        return "is no list of files and a target"
    if any(flag.startswith("--from") for flag in flags):
        return "copies from another stage or image"
    if any(re.search(r"[*?\[\]$]", path) for path in paths):
        return "has a pattern or a variable"
    if word == "ADD" and any(re.search(r"://|^git@|\.(?:tar|tgz|tar\.\w+|tbz|txz)$", path) for path in paths):
        return "fetches, or unpacks an archive"
    return ""


def _absolute(workdir: str, path: str) -> str:
    joined = posixpath.normpath(posixpath.join(workdir, path))
    return "/" + joined.lstrip("/")

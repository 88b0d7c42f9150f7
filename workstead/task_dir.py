"""A task directory: ``task.toml``, ``instruction.md``, ``visible/**``, ``hidden/**``. Nothing else is read.

``task.toml`` has the manifest's fields except the two file lists: name, environment, collect, limits, network, allow_hosts,
deny_hosts, client, graders, facets, price, human_time_s, labels and (unless instruction.md exists) instruction.
"""

import hashlib
import math
import os
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, time
from pathlib import Path
from typing import Any, cast

from workstead.errors import WorksteadError

FIELDS = frozenset(
    {
        *("name", "instruction", "environment", "collect", "limits", "network"),
        *("allow_hosts", "deny_hosts", "client"),
        *("graders", "facets", "price", "human_time_s", "labels"),
    }
)
MAX_FILES = 10_000
MAX_TEXT_BYTES = 800_000


class InvalidInput(WorksteadError):
    """A directory or file of the user's that cannot be used; ``problems`` has one line per item."""

    def __init__(self, where: Path, problems: list[str]) -> None:
        self.where = where
        self.problems = problems
        super().__init__("\n".join([f"{where}:", *(f"  {p}" for p in problems)]))


@dataclass(frozen=True, slots=True)
class Bundle:
    """A manifest ready to be sent and where the bytes of its files lie."""

    manifest: dict[str, Any]
    files: dict[str, Path] = field(default_factory=dict[str, Path])
    """sha256 → a file with that content."""


def read_task_dir(root: Path) -> Bundle:
    """Read a task directory. Raises InvalidInput naming every item that is wrong; symbolic links are never followed."""
    problems: list[str] = []
    manifest = _read_toml(root, problems)
    _read_instruction(root, manifest, problems)
    files: dict[str, Path] = {}
    for name in ("visible", "hidden"):
        manifest[name] = _refs(root / name, name, files, problems)
    if problems:
        raise InvalidInput(root, problems)
    return Bundle(manifest, files)


def read_folder(folder: Path) -> tuple[list[dict[str, str]], dict[str, Path]]:
    """Return the files below ``folder`` (path and sha256 each), and digest → file. Raises InvalidInput, OSError."""
    files: dict[str, Path] = {}
    problems: list[str] = [] if os.path.lexists(folder) else ["does not exist"]
    refs = _refs(folder, folder.name, files, problems)
    if problems:
        raise InvalidInput(folder, problems)
    return [{"path": ref["path"], "sha256": ref["sha256"]} for ref in refs], files


def _read_toml(root: Path, problems: list[str]) -> dict[str, Any]:
    text = read_text(root / "task.toml", "task.toml", problems)
    try:
        manifest = _json_values(tomllib.loads(text or ""), problems)
    except tomllib.TOMLDecodeError as error:
        problems.append(f"task.toml: {error}")
        return {}
    except RecursionError:
        problems.append("task.toml: is nested too deep")
        return {}
    unknown = sorted(set(manifest) - FIELDS)
    problems.extend(f"task.toml: unknown field {name!r}" for name in unknown)
    if text is not None and not isinstance(manifest.get("name"), str):
        problems.append("task.toml: name is missing (a string)")
    return manifest


def _json_values(value: Any, problems: list[str]) -> Any:
    """Return ``value`` with days and times as text; JSON has neither them nor numbers without end."""
    if isinstance(value, dict):
        return {key: _json_values(item, problems) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_json_values(item, problems) for item in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(f"task.toml: {value} is not a number that can be sent")
    return value.isoformat() if isinstance(value, date | time) else value


def _read_instruction(root: Path, manifest: dict[str, Any], problems: list[str]) -> None:
    path = root / "instruction.md"
    if "instruction" in manifest:
        if os.path.lexists(path):
            problems.append("instruction.md: task.toml has an instruction already")
        return
    text = read_text(path, "instruction.md", problems)
    if text is not None:
        manifest["instruction"] = text
        if not text.strip():
            problems.append("instruction.md: is empty")


def read_text(path: Path, name: str, problems: list[str]) -> str | None:
    """Read a small UTF-8 file that is no link; None with a problem noted otherwise."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        problems.append(f"{name}: {error.strerror}")
        return None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            problems.append(f"{name}: is not a regular file")
            return None
        data = file.read(MAX_TEXT_BYTES + 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        problems.append(f"{name}: is not UTF-8")
        return None
    if len(data) > MAX_TEXT_BYTES:
        problems.append(f"{name}: is longer than {MAX_TEXT_BYTES} bytes")
    return text


def _refs(folder: Path, name: str, files: dict[str, Path], problems: list[str]) -> list[dict[str, Any]]:
    refs: list[dict[str, Any]] = []
    if not os.path.lexists(folder):
        return refs
    if folder.is_symlink() or not folder.is_dir():
        problems.append(f"{name}: is not a directory")
        return refs
    for path, trouble in _walk(folder):
        relative = path.relative_to(folder).as_posix()
        if trouble:
            problems.append(f"{name}/{relative}: {trouble}")
        elif len(refs) == MAX_FILES:
            problems.append(f"{name}: has more than {MAX_FILES} files")
            break
        else:
            refs.append(file_ref(path, relative, files))
    return refs


def _walk(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield each entry that is not a directory, sorted, with what is wrong about it."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        path = Path(entry.path)
        if entry.is_symlink():
            yield path, "is a symbolic link"
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(path)
        elif not entry.is_file(follow_symlinks=False):
            yield path, "is neither a file nor a directory"
        else:
            yield path, _name_trouble(entry.name)


def _name_trouble(name: str) -> str | None:
    odd = any(ord(c) < 32 or c in "\\\x7f" or 0xD800 <= ord(c) <= 0xDFFF for c in name)
    return "has a backslash, control character or undecodable byte in its name" if odd else None


def file_ref(path: Path, name: str, files: dict[str, Path]) -> dict[str, Any]:
    """Hash a file, note it in ``files`` and return its reference for a manifest."""
    digest, size = hashlib.sha256(), 0
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    files[digest.hexdigest()] = path
    return {"path": name, "sha256": digest.hexdigest(), "size_bytes": size}

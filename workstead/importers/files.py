"""Files of a source by content: walked without following a link, hashed in one stream, never held in memory."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workstead.task_dir import file_ref

MAX_FILES = 10_000
"""Of one item, visible or hidden."""
MAX_DEPTH = 32
MAX_PATH_BYTES = 1_000
MAX_FILE_BYTES = 8 << 30
"""What the service takes as one blob, unless its operator says otherwise."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies below a folder; ``trouble`` says why it cannot be used."""

    path: str
    """Relative, with slashes."""
    file: Path
    trouble: str | None = None


def walk(folder: Path, prefix: str = "", depth: int = 0) -> Iterator[Entry]:
    """Yield everything below ``folder`` that is not a directory, sorted by name. Raises OSError."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        path, file = f"{prefix}{entry.name}", Path(entry.path)
        if trouble := name_trouble(entry.name) or _too_long(path):
            yield Entry(path, file, trouble)
        elif entry.is_symlink():
            yield Entry(path, file, "is a symbolic link")
        elif entry.is_dir(follow_symlinks=False):
            if depth == MAX_DEPTH:
                yield Entry(path, file, f"lies deeper than {MAX_DEPTH} folders")
            else:
                yield from walk(file, f"{path}/", depth + 1)
        elif not entry.is_file(follow_symlinks=False):
            yield Entry(path, file, "is neither a file nor a directory")
        elif entry.stat(follow_symlinks=False).st_size > MAX_FILE_BYTES:
            yield Entry(path, file, f"is longer than {MAX_FILE_BYTES} bytes")
        else:
            yield Entry(path, file)


def name_trouble(name: str) -> str | None:
    odd = any(ord(c) < 32 or c in "\\\x7f" or 0xD800 <= ord(c) <= 0xDFFF for c in name)
    return "has a backslash, control character or undecodable byte in its name" if odd else None


def _too_long(path: str) -> str | None:
    long = len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES
    return f"has a path of more than {MAX_PATH_BYTES} bytes" if long else None


def path_trouble(path: str) -> str | None:
    """Say why ``path``, which a source names, cannot be a file below a folder; null: it can."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is no relative path without '.' and '..'"
    long = len(parts) > MAX_DEPTH or any(len(part.encode("utf-8", "replace")) > 255 for part in parts)
    return name_trouble(path) or _too_long(path) or ("has too long a name, or too many" if long else None)


def locate(base: Path, paths: Iterable[str]) -> Path | None:
    """Return the first of ``paths`` (checked ones) that is a regular file below ``base``, no link on the way."""
    for path in paths:
        file = base
        for part in path.split("/"):
            file = file / part
            if file.is_symlink():
                break
        else:
            if file.is_file():
                return file
    return None


def is_folder(path: Path) -> bool:
    """Tell whether ``path`` is a directory itself, and no link to one."""
    return not path.is_symlink() and path.is_dir()


@dataclass(slots=True)
class Contents:
    """Every file that the manifest refers to, by digest, and what was read of the source."""

    folder: Path
    """Where files that the importer makes are written."""
    files: dict[str, Path] = field(default_factory=dict[str, Path])
    read: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(path within the source, sha256)."""

    @classmethod
    def new(cls) -> "tuple[tempfile.TemporaryDirectory[str], Contents]":
        made = tempfile.TemporaryDirectory(prefix="workstead-import-")
        return made, cls(Path(made.name))

    def take(self, entry: Entry, path: str, root: Path) -> dict[str, Any]:
        """Hash a file of the source and return its reference as ``path``. Raises OSError."""
        if entry.file.lstat().st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, f"is longer than {MAX_FILE_BYTES} bytes", str(entry.file))
        ref = file_ref(entry.file, path, self.files)
        self.read.append((entry.file.relative_to(root).as_posix(), str(ref["sha256"])))
        return ref

    def make(self, path: str, data: bytes) -> dict[str, Any]:
        """Write a file of our own and return its reference as ``path``."""
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self.files:
            target = self.folder / sha256
            target.write_bytes(data)
            self.files[sha256] = target
        return {"path": path, "sha256": sha256, "size_bytes": len(data)}

    def make_json(self, path: str, value: Any) -> dict[str, Any]:
        return self.make(path, json.dumps(value, ensure_ascii=True, sort_keys=True).encode() + b"\n")

    def digest(self) -> str:
        """Return the sha256 of the list of what was read."""
        return digest_of(sorted(self.read))

    def referred(self, manifest: Mapping[str, Any]) -> dict[str, Path]:
        """Return the files that the manifest's tasks name; those of items that were refused are not sent."""
        tasks = [item["task"] for item in manifest["items"] if item["task"] is not None]
        wanted = {ref["sha256"] for task in tasks for side in ("visible", "hidden") for ref in task[side]}
        return {sha: path for sha, path in self.files.items() if sha in wanted}


def digest_of(value: Any) -> str:
    """Return the sha256 of ``value`` as canonical JSON; lone surrogates are escaped like everything beyond ASCII."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

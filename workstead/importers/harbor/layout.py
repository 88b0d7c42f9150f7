"""Which folders are tasks, and which image a task's environment was built as."""

import os
import re
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from workstead.importers.drafts import slug
from workstead.importers.files import is_folder
from workstead.importers.harbor.config import TOML, YAML
from workstead.importers.untrusted import read_json
from workstead.task_dir import InvalidInput

MAX_LEVELS = 3
"""Folders that sets are sorted into."""
MAX_LOOKED_AT = 100_000
MAX_BYTES = 4 << 20
_IMAGE = re.compile(r"([a-z0-9][a-z0-9._/:@-]{0,254}|img_[0-9A-Z]{26})\Z")
_IMAGES = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))


def find_tasks(root: Path, notes: list[str]) -> list[Path]:
    """Return the task folders in order: ``root`` itself, or those below it. Raises InvalidInput if none is, OSError."""
    if _is_task(root):
        return [root]
    found: list[Path] = []
    _look(root, root, 0, found, notes)
    if not found:
        raise InvalidInput(root, [f"no task was found; expected <task>/{TOML} or <task>/{YAML}"])
    return found


def _look(root: Path, folder: Path, level: int, found: list[Path], notes: list[str]) -> None:
    if not is_folder(folder):
        return
    for child in sorted(Path(entry.path) for entry in os.scandir(folder)):
        if len(found) + len(notes) > MAX_LOOKED_AT:
            raise InvalidInput(root, [f"has more than {MAX_LOOKED_AT} entries"])
        if child.is_symlink() and child.is_dir():
            notes.append(f"{_shown(child, root)}: is a symbolic link; not read")
        elif _is_task(child):
            found.append(child)
        elif child.is_dir() and not child.name.startswith(".") and level < MAX_LEVELS - 1:
            _look(root, child, level + 1, found, notes)
        else:
            notes.append(f"{_shown(child, root)}: is no task; not read")


def _is_task(path: Path) -> bool:
    return is_folder(path) and any(os.path.lexists(path / name) for name in (TOML, YAML))


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix().encode("utf-8", "backslashreplace").decode()


def key_of(folder: Path, root: Path) -> str:
    """Return a task's name in its set: its folder's, with those that it is sorted into."""
    return folder.name if folder == root else folder.relative_to(root).as_posix()


def image_name(key: str) -> str:
    """Return what the image of a task's environment is called unless the user says otherwise."""
    return f"harbor-{slug(key.replace('/', '-')).lower()}"


def read_images(path: Path | None) -> dict[str, str]:
    """Read task → image. Raises InvalidInput, OSError."""
    if path is None:
        return {}
    try:
        images = _IMAGES.validate_python(read_json(path, MAX_BYTES))
    except ValidationError as error:
        raise InvalidInput(path, ["must be an object: task → image"]) from error
    if bad := [name for name in images.values() if not _IMAGE.match(name)]:
        raise InvalidInput(path, [f"not the name or id of an image: {name[:100]!r}" for name in bad[:20]])
    return images

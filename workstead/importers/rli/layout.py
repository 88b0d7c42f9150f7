"""Which folders hold projects: ``<root>/<id>/{project/brief.md, project/inputs/, human_deliverable/}``."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from workstead.importers.files import is_folder
from workstead.task_dir import InvalidInput

PROJECT, BRIEF, INPUTS, METADATA, REFERENCE = "project", "brief.md", "inputs", "metadata.json", "human_deliverable"
PUBLIC = re.compile(r"public_\d{1,9}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    key: str
    path: Path
    trouble: tuple[str, str] | None = None
    """(type of problem, detail) where the folder cannot be a project."""


def find_projects(root: Path, notes: list[str]) -> list[ProjectFolder]:
    """Return every project below ``root``, in order. Raises InvalidInput if there is none, OSError."""
    if not is_folder(root):
        raise InvalidInput(root, ["is not a folder; expected <id>/project/brief.md"])
    found: list[ProjectFolder] = []
    for path in sorted(Path(entry.path) for entry in os.scandir(root)):
        if _is_project(path):
            found.append(_project(path))
        else:
            notes.append(f"{path.name}: is no project; not read")
    if not any(is_folder(project.path / PROJECT) for project in found if project.trouble is None):
        raise InvalidInput(root, ["no project was found; expected <id>/project/brief.md"])
    return found


def _is_project(path: Path) -> bool:
    """A project that lost a part of it is still one, with something wrong."""
    if path.name.startswith("."):
        return False
    if PUBLIC.match(path.name):
        return True
    return not path.is_symlink() and any(os.path.lexists(path / name) for name in (PROJECT, REFERENCE))


def _project(path: Path) -> ProjectFolder:
    if path.is_symlink():
        return ProjectFolder(path.name, path, ("symbolic_link", "the project is a symbolic link"))
    if not path.is_dir():
        return ProjectFolder(path.name, path, ("bad_file", "the project is not a folder"))
    return ProjectFolder(path.name, path)

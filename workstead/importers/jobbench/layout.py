"""Which folders hold tasks: as published (``dataset/`` and ``dataset_easy/``) or as a local copy (``dataset/main|easy/``)."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workstead.importers.files import is_folder
from workstead.task_dir import InvalidInput

SPLITS = ("main", "easy")
_OCCUPATION = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")
_TASK = re.compile(r"task[1-9][0-9]*\Z")


@dataclass(frozen=True, slots=True)
class TaskFolder:
    split: str
    occupation: str
    name: str
    path: Path
    trouble: tuple[str, str] | None = None
    """(type of problem, detail) where the folder cannot be a task."""

    @property
    def key(self) -> str:
        """Unique over both splits, which have tasks of the same occupation and number."""
        return f"{self.split}--{self.occupation}--{self.name}"

    @property
    def published(self) -> str:
        """Where the repository has it, whatever a local copy calls its folders."""
        return f"{'dataset' if self.split == 'main' else 'dataset_easy'}/{self.occupation}/{self.name}"


def find_tasks(root: Path, notes: list[str]) -> list[TaskFolder]:
    """Return every task folder of both splits, in order. Raises InvalidInput if there is none, OSError."""
    found = [task for split, folder in _split_folders(root) for task in _tasks_of(split, folder, root, notes)]
    if not any(task.trouble is None for task in found):
        expected = "dataset/<occupation>/taskN, dataset_easy/<occupation>/taskN or dataset/main|easy/<occupation>/taskN"
        raise InvalidInput(root, [f"no task was found; expected {expected}"])
    return found


def _split_folders(root: Path) -> Iterator[tuple[str, Path]]:
    for folder in (root / "dataset", root):
        local = [(split, folder / split) for split in SPLITS if _holds_occupations(folder / split)]
        if local:
            yield from local
            return
    published = (("main", root / "dataset"), ("easy", root / "dataset_easy"))
    yield from ((split, folder) for split, folder in published if is_folder(folder))


def _holds_occupations(folder: Path) -> bool:
    """An occupation may be called ``main``: a split's folder has folders of tasks, an occupation's has tasks."""
    return is_folder(folder) and any(_has_tasks(child) for child in _children(folder))


def _has_tasks(folder: Path) -> bool:
    return is_folder(folder) and any(_TASK.match(child.name) for child in _children(folder))


def _children(folder: Path) -> list[Path]:
    return sorted(Path(entry.path) for entry in os.scandir(folder))


def _tasks_of(split: str, folder: Path, root: Path, notes: list[str]) -> Iterator[TaskFolder]:
    for occupation in _children(folder):
        if occupation.name.startswith(".") or not is_folder(occupation):
            notes.append(f"{occupation.relative_to(root)}: is no folder of tasks; not read")
            continue
        for task in _children(occupation):
            if task.name.startswith(".") or not (is_folder(task) or task.is_symlink()):
                notes.append(f"{task.relative_to(root)}: is no task; not read")
            else:
                yield TaskFolder(split, occupation.name, task.name, task, _trouble(occupation.name, task))


def _trouble(occupation: str, task: Path) -> tuple[str, str] | None:
    if not _OCCUPATION.match(occupation):
        return "bad_occupation_name", f"{occupation!r} is not lower-case letters, digits, '_' and '-'"
    if not _TASK.match(task.name):
        return "bad_task_name", f"{task.name!r} is not 'task' and a number from 1 on"
    if task.is_symlink():
        return "symbolic_link", "the task is a symbolic link"
    return None

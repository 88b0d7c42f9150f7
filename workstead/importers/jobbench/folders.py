"""JobBench as folders. Rubrics, cards and withheld references are hidden assets; the rest is visible."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workstead.importers.contract import ImportOptions
from workstead.importers.drafts import Draft
from workstead.importers.files import MAX_FILES, Contents, Entry, is_folder, walk
from workstead.importers.jobbench.layout import TaskFolder
from workstead.importers.jobbench.making import CARD, FOLDER, INSTRUCTIONS, Found, TaskMaker
from workstead.importers.jobbench.pins import Pins
from workstead.importers.jobbench.rubrics import FILE as RUBRICS
from workstead.importers.jobbench.rubrics import read_rubrics
from workstead.importers.jobbench.settings import MADE
from workstead.task_dir import read_text

WITHHELD = "files_required_to_search"


class FolderReader:
    """Makes a draft of each task folder."""

    def __init__(self, root: Path, maker: TaskMaker, contents: Contents, pins: Pins) -> None:
        self._root, self._maker, self._contents, self._pins = root, maker, contents, pins

    def drafts(self, folders: list[TaskFolder], options: ImportOptions) -> Iterator[Draft]:
        for done, folder in enumerate(folders, 1):
            yield self._draft(folder)
            if options.on_item is not None:
                options.on_item(done, len(folders))

    def _draft(self, folder: TaskFolder) -> Draft:
        draft = Draft(folder.key)
        if folder.trouble is not None:
            draft.quarantine(folder.trouble[0], "", folder.trouble[1])
            return draft
        try:
            self._read(folder, draft)
        except OSError as error:
            draft.task = None
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))
        return draft

    def _read(self, folder: TaskFolder, draft: Draft) -> None:
        text = _instructions(folder.path / FOLDER, draft)
        visible = self._below(folder, FOLDER, draft)
        withheld = self._below(folder, WITHHELD, draft)
        hidden = [*self._own(folder, draft), *withheld]
        _unread(folder.path, draft)
        usable = draft.status != "quarantined"
        if (rubrics := read_rubrics(folder.path / RUBRICS, draft)) is not None:
            hidden.append(self._contents.make_json(MADE, rubrics))
        if usable:
            found = Found(folder.split, folder.occupation, folder.name, text, visible, hidden, bool(withheld))
            draft.task = self._maker.task(found, draft)

    def _below(self, task: TaskFolder, name: str, draft: Draft) -> list[dict[str, Any]]:
        refs: list[dict[str, Any]] = []
        folder = task.path / name
        if not is_folder(folder):
            if folder.is_symlink() or folder.exists():
                draft.quarantine("bad_file", name, "is not a folder")
            return refs
        for entry in walk(folder):
            path = f"{name}/{entry.path}"
            if entry.trouble is not None:
                draft.quarantine("bad_file", path, entry.trouble)
            elif len(refs) == MAX_FILES:
                draft.quarantine("too_many_files", name, f"more than {MAX_FILES} files")
                break
            else:
                refs.append(self._take(task, entry, path, path, draft))
        return refs

    def _own(self, task: TaskFolder, draft: Draft) -> Iterator[dict[str, Any]]:
        """Yield the hidden files of the task's own folder; only the rubrics are required."""
        for name in (RUBRICS, CARD):
            path = task.path / name
            if path.is_symlink() or (path.exists() and not path.is_file()):
                draft.quarantine("bad_file", name, "is not a regular file")
            elif path.exists():
                yield self._take(task, Entry(name, path), name, f"source/{name}", draft)

    def _take(self, task: TaskFolder, entry: Entry, path: str, as_path: str, draft: Draft) -> dict[str, Any]:
        ref = self._contents.take(entry, as_path, self._root)
        self._pins.check(f"{task.published}/{path}", str(ref["sha256"]), draft)
        return ref


def _instructions(folder: Path, draft: Draft) -> str:
    if not is_folder(folder):
        draft.quarantine("no_task_folder", FOLDER, "is missing, or is no folder")
        return ""
    problems: list[str] = []
    text = read_text(folder / INSTRUCTIONS, INSTRUCTIONS, problems)
    if text is not None and not text.strip():
        problems.append(f"{INSTRUCTIONS}: is empty")
    for problem in problems:
        draft.quarantine("bad_instructions", f"{FOLDER}/{INSTRUCTIONS}", problem.removeprefix(f"{INSTRUCTIONS}: "))
    return text or ""


def _unread(folder: Path, draft: Draft) -> None:
    known = {FOLDER, WITHHELD, RUBRICS, CARD}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            draft.note("unread_entry", path.name, "is no part of the format; not read")

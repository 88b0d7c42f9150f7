"""Reads JobBench as it is published. Rubrics, cards and withheld references are hidden assets; the rest is visible.

The tasks carry their rubrics (``hidden/rubrics.json``). With option ``judge`` method ``rubric_chain`` grades them; without it each
item says ``grader_later``: a grading plan brings the judges. The benchmark wants the web, which no sandbox has yet: each item says ``network_wanted``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from workstead.importers.assembly import assemble, imported
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft
from workstead.importers.files import MAX_FILES, Contents, Entry, is_folder, walk
from workstead.importers.jobbench.categories import groupings, read_categories
from workstead.importers.jobbench.instruction import INSTRUCTION, missing_files
from workstead.importers.jobbench.layout import TaskFolder, find_tasks
from workstead.importers.jobbench.rubrics import FILE as RUBRICS
from workstead.importers.jobbench.rubrics import read_rubrics
from workstead.importers.settings import CommonSettings, parse_settings, settings_help
from workstead.task_dir import read_text

NAME, VERSION = "jobbench", "1"
FOLDER, INSTRUCTIONS, CARD, WITHHELD = (
    "task_folder",
    "TASK_INSTRUCTIONS.txt",
    "task_card.md",
    "files_required_to_search",
)
MADE = "rubrics.json"
"""Hidden file with the rubrics in one form."""
LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "cpus": 4.0, "memory_bytes": 8 << 30, "disk_bytes": 20 << 30}
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
LABELS = {"network_wanted": "web"}
GRADER_WANTED = {"grader_wanted": "rubric_chain"}


class Settings(CommonSettings):
    categories: Path | None = None
    """JSON file, occupation → category; makes the facet and the table's columns."""
    judge: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")
    """Model of the catalogue that judges by the rubrics."""

    @property
    def labels(self) -> dict[str, str]:
        return LABELS if self.judge is not None else {**LABELS, **GRADER_WANTED}

    @property
    def graders(self) -> list[dict[str, Any]]:
        if self.judge is None:
            return []
        return [{"method": "rubric_chain", "settings": {"rubrics": MADE, "judges": [{"model": self.judge}]}}]


class JobBenchImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        mapping = read_categories(settings.categories)
        notes: list[str] = []
        folders = find_tasks(source, notes)
        made, contents = Contents.new()
        try:
            reader = Reader(source, settings, mapping, contents)
            drafts = list(reader.drafts(folders, options))
            fields = {"policies": POLICIES, "groupings": groupings(mapping), "labels": settings.labels}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, notes, made)


class Reader:
    """Makes a draft of each task folder."""

    def __init__(self, root: Path, settings: Settings, mapping: Mapping[str, str], contents: Contents) -> None:
        self._root, self._settings, self._mapping, self._contents = root, settings, mapping, contents

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
        visible = self._take(folder.path / FOLDER, f"{FOLDER}/", draft)
        withheld = self._take(folder.path / WITHHELD, f"{WITHHELD}/", draft)
        hidden = [*self._own(folder.path, draft), *withheld]
        _unread(folder.path, draft)
        usable = draft.status != "quarantined"
        if (rubrics := read_rubrics(folder.path / RUBRICS, draft)) is not None:
            hidden.append(self._contents.make_json(MADE, rubrics))
        if not usable:
            return
        for name in missing_files(text, [str(ref["path"]) for ref in visible]):
            draft.note("named_file_missing", f"{FOLDER}/{INSTRUCTIONS}", f"{name} is listed and not there")
        if self._settings.judge is None:
            draft.note(
                "grader_later", RUBRICS, "no judge is named: option judge, or a grading plan of method rubric_chain"
            )
        draft.note("network_wanted", "", "the benchmark lets agents search the web; its tasks run without a network")
        draft.task = self._task(folder, visible, hidden, bool(withheld))

    def _take(self, folder: Path, prefix: str, draft: Draft) -> list[dict[str, Any]]:
        refs: list[dict[str, Any]] = []
        if not is_folder(folder):
            if folder.is_symlink() or folder.exists():
                draft.quarantine("bad_file", folder.name, "is not a folder")
            return refs
        for entry in walk(folder):
            if entry.trouble is not None:
                draft.quarantine("bad_file", prefix + entry.path, entry.trouble)
            elif len(refs) == MAX_FILES:
                draft.quarantine("too_many_files", prefix, f"more than {MAX_FILES} files")
                break
            else:
                refs.append(self._contents.take(entry, prefix + entry.path, self._root))
        return refs

    def _own(self, folder: Path, draft: Draft) -> Iterator[dict[str, Any]]:
        """Yield the hidden files of the task's own folder; only the rubrics are required."""
        for name in (RUBRICS, CARD):
            path = folder / name
            if path.is_symlink() or (path.exists() and not path.is_file()):
                draft.quarantine("bad_file", name, "is not a regular file")
            elif path.exists():
                yield self._contents.take(Entry(name, path), f"source/{name}", self._root)

    def _task(
        self, folder: TaskFolder, visible: list[dict[str, Any]], hidden: list[dict[str, Any]], withheld: bool
    ) -> dict[str, Any]:
        category = self._mapping.get(folder.occupation)
        facets = {
            "occupation": folder.occupation,
            "split": folder.split,
            # The task's own instructions are no reference file.
            "reference_files": float(len(visible) - 1),
            "withheld": "yes" if withheld else "no",
            **({} if category is None else {"category": category}),
        }
        return {
            "name": f"{NAME}/{folder.split}/{folder.occupation}/{folder.name}",
            "instruction": INSTRUCTION,
            "visible": visible,
            "hidden": hidden,
            "environment": self._settings.environment or "workbench_full",
            "limits": self._settings.limits(LIMITS),
            "facets": facets,
            "labels": self._settings.labels,
            **({"graders": graders} if (graders := self._settings.graders) else {}),
        }


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

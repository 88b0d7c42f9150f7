"""Reads the Remote Labor Index as it is published. What the professional delivered is hidden: raters see it as the
reference (``reference/``), the oracle delivers it (``solution/output/``); no agent ever does.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workstead.importers.assembly import assemble, imported
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft, slug
from workstead.importers.files import Contents, Entry, is_folder
from workstead.importers.rli.instruction import instruction_of
from workstead.importers.rli.layout import (
    BRIEF,
    INPUTS,
    METADATA,
    PROJECT,
    PUBLIC,
    REFERENCE,
    ProjectFolder,
    find_projects,
)
from workstead.importers.rli.metadata import Metadata, hours_of, label_of, metadata_of, price_of, read_metadata
from workstead.importers.settings import CommonSettings, network_fields, parse_settings, settings_help
from workstead.importers.trees import take_tree
from workstead.importers.untrusted import unstorable
from workstead.task_dir import read_text

NAME, VERSION = "rli", "1"
NOTE = "evaluator_note"
NOTE_FILE = f"{NOTE}.md"
"""Hidden file that raters see."""
NOTE_CHARS = 16_000
MAX_DELIVERED = 4_900
"""Files of the reference: each is named twice among at most 10 000 hidden ones."""
LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "cpus": 4.0, "memory_bytes": 8 << 30, "disk_bytes": 20 << 30}
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
FACETS = ("category", "subcategory", "split")
NO_MERGES: dict[str, list[str]] = {}
NO_METADATA: Metadata = {}


class Settings(CommonSettings):
    metadata: Path | None = None
    """JSON file, project → price, hours, category, note: over the project's own metadata.json."""
    split: Literal["public", "private"] | None = None
    """Of every project; default: public for those called public_NNN, else private."""
    denominator: int | None = Field(default=None, ge=1, le=20_000)
    """Projects that published rates are shares of, where they are more than those imported; recorded as a label."""
    network: Literal["none", "web"] = "none"
    """web: any public host but those of the deny list."""
    judge: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")
    """Model of the catalogue that compares each deliverable with the reference, beside the people who rate it."""

    people: Literal["yes", "no"] = "yes"
    """no: no run waits for people's ratings; campaigns are still possible."""

    @property
    def labels(self) -> dict[str, str]:
        counted = {} if self.denominator is None else {"denominator": str(self.denominator)}
        return {"network": self.network, **counted}

    @property
    def graders(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{"method": "human_panel", "settings": {}}] if self.people == "yes" else []
        if self.judge is not None:
            settings = {"reference": "reference", "judges": [{"model": self.judge}]}
            found.append({"method": "pairwise", "settings": settings})
        return found


class RliImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        metadata = read_metadata(settings.metadata)
        network = network_fields(settings.network, settings)
        notes: list[str] = []
        folders = find_projects(source, notes)
        unknown = sorted(set(metadata) - {folder.key for folder in folders})
        if settings.network == "web" and settings.deny is None:
            notes.append("network=web without a deny list: agents can look up what the professionals delivered")
        notes += [f"metadata: there is no project {key!r}" for key in unknown[:100]]
        made, contents = Contents.new()
        try:
            drafts = list(Reader(source, settings, metadata, network, contents).drafts(folders, options))
            groupings = [{"name": facet, "facet": facet, "merges": NO_MERGES} for facet in FACETS]
            fields = {"policies": POLICIES, "groupings": groupings, "labels": settings.labels}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, notes, made)


class Reader:
    """Makes a draft of each project."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        metadata: Mapping[str, Metadata],
        network: Mapping[str, Any],
        contents: Contents,
    ) -> None:
        self._root, self._settings, self._metadata = root, settings, metadata
        self._network, self._contents = network, contents

    def drafts(self, folders: list[ProjectFolder], options: ImportOptions) -> Iterator[Draft]:
        for done, folder in enumerate(folders, 1):
            yield self._draft(folder)
            if options.on_item is not None:
                options.on_item(done, len(folders))

    def _draft(self, folder: ProjectFolder) -> Draft:
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

    def _read(self, folder: ProjectFolder, draft: Draft) -> None:
        if not is_folder(folder.path / PROJECT):
            draft.quarantine("no_project_folder", PROJECT, "is missing, or is no folder")
            return
        brief = _brief(folder.path, draft)
        visible = self._tree(folder.path / PROJECT / INPUTS, f"{INPUTS}/", draft)
        delivered = self._tree(folder.path / REFERENCE, "", draft)
        hidden = [
            *(
                {**ref, "path": f"{side}/{ref['path']}"}
                for side in ("reference", "solution/output")
                for ref in delivered
            ),
            *self._own(folder.path),
        ]
        _unread(folder.path, draft)
        metadata = metadata_of(folder.path, self._metadata.get(folder.key, NO_METADATA), draft)
        hidden += self._note(metadata, draft)
        if draft.status != "quarantined":
            draft.task = self._task(folder, brief, visible, hidden, metadata, draft)
        if not delivered:
            draft.quarantine("no_reference", REFERENCE, "there is nothing to rate against")
        if len(delivered) > MAX_DELIVERED:
            draft.task = None
            draft.quarantine("too_many_files", REFERENCE, f"more than {MAX_DELIVERED} files")

    def _tree(self, folder: Path, prefix: str, draft: Draft) -> list[dict[str, Any]]:
        return take_tree(folder, draft, self._contents, self._root, prefix)

    def _own(self, folder: Path) -> Iterator[dict[str, Any]]:
        path = folder / PROJECT / METADATA
        if path.is_file() and not path.is_symlink():
            yield self._contents.take(Entry(METADATA, path), f"source/{METADATA}", self._root)

    def _note(self, metadata: Metadata, draft: Draft) -> Iterator[dict[str, Any]]:
        """Yield the note for raters, where the project has one."""
        text = metadata.get(NOTE)
        if text is None:
            return
        if not isinstance(text, str) or not text.strip() or len(text) > NOTE_CHARS or unstorable(text):
            draft.note("bad_metadata", NOTE, f"is no text of 1 to {NOTE_CHARS} characters; raters are not shown it")
            return
        yield self._contents.make(NOTE_FILE, text.encode())

    def _task(
        self,
        folder: ProjectFolder,
        brief: str,
        visible: list[dict[str, Any]],
        hidden: list[dict[str, Any]],
        metadata: Metadata,
        draft: Draft,
    ) -> dict[str, Any]:
        price, hours = price_of(metadata, draft), hours_of(metadata, draft)
        graders = self._settings.graders
        if not graders:
            draft.note("grader_later", "", "neither people nor a judge are named: a campaign, or a grading plan")
        facets: dict[str, Any] = {
            "split": self._settings.split or ("public" if PUBLIC.match(folder.key) else "private"),
            "inputs": float(len(visible)),
            **{name: v for name in ("category", "subcategory") if (v := label_of(metadata, name, draft)) is not None},
            **({} if price is None or price["usd"] is None else {"price_usd": float(price["usd"])}),
            **({} if hours is None else {"hours": hours[0], "hours_basis": hours[1]}),
        }
        return {
            "name": f"{NAME}/{slug(folder.key)}",
            "instruction": instruction_of(brief, len(visible)),
            "visible": visible,
            "hidden": hidden,
            "environment": self._settings.environment or "workbench_full",
            "limits": self._settings.limits(LIMITS),
            "graders": graders,
            "facets": facets,
            "price": price,
            "human_time_s": None if hours is None else hours[0] * 3600,
            "labels": {},
            **self._network,
        }


def _brief(folder: Path, draft: Draft) -> str:
    where = f"{PROJECT}/{BRIEF}"
    problems: list[str] = []
    text = read_text(folder / PROJECT / BRIEF, BRIEF, problems)
    if text is not None and not text.strip():
        problems.append(f"{BRIEF}: is empty")
    for problem in problems:
        draft.quarantine("bad_brief", where, problem.removeprefix(f"{BRIEF}: "))
    return text or ""


def _unread(folder: Path, draft: Draft) -> None:
    for part, known in (("", {PROJECT, REFERENCE}), (PROJECT, {BRIEF, INPUTS, METADATA})):
        for path in sorted((folder / part).iterdir()):
            if path.name not in known:
                where = path.relative_to(folder).as_posix()
                draft.note("unread_entry", where, "is no part of the format; not read")

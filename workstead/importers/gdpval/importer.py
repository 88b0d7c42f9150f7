"""Reads GDPval's table (parquet, JSONL or JSON) with the files beside it.

The experts' deliverables are the reference: the oracle delivers them and method ``pairwise`` compares with them. Rubrics
become those of ``rubric_chain``. Without option ``judge`` a grading plan brings the judges.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from workstead.importers.assembly import assemble, imported
from workstead.importers.beside import Beside
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft, key_text, slug
from workstead.importers.fields import complaints
from workstead.importers.files import Contents, Entry, is_folder
from workstead.importers.gdpval.columns import Item, rubrics_of, shown
from workstead.importers.parquet import parquet_rows
from workstead.importers.settings import CommonSettings, parse_settings, settings_help
from workstead.importers.tables import Row, read_rows
from workstead.importers.untrusted import unstorable
from workstead.task_dir import InvalidInput

NAME, VERSION = "gdpval", "1"
REFERENCES, DELIVERABLES = "reference_files", "deliverable_files"
SOLUTION, RUBRICS = "solution/output", "rubrics.json"
METHODS = ("pairwise", "rubric_chain")
LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "cpus": 2.0, "memory_bytes": 4 << 30, "disk_bytes": 10 << 30}
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
NO_MERGES: dict[str, list[str]] = {}
GROUPINGS = [{"name": facet, "facet": facet, "merges": NO_MERGES} for facet in ("sector", "occupation")]
OUTPUT_RULE = "Save the finished deliverables, and only those, in /workspace/output."


class Settings(CommonSettings):
    files: Path | None = None
    """Folder that has reference_files/ and deliverable_files/; default: the table's own, or the one above its data/."""
    judge: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")
    """Model of the catalogue that judges."""
    grader: Literal["pairwise", "rubric", "both"] = "both"
    """Compare with the expert's work, go by the rubrics, or both."""


class GdpvalImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        tables = _tables(source)
        rows = [row for table in tables for row in _rows(table)]
        made, contents = Contents.new()
        try:
            for table in tables:
                contents.take(Entry(table.name, table), "", table.parent)
            reader = Reader(settings, Beside(settings.files or _base(tables[0]), contents))
            drafts = list(reader.drafts(rows, options))
            labels = {} if settings.judge is not None else {"grader_wanted": ",".join(METHODS)}
            fields = {"policies": POLICIES, "groupings": GROUPINGS, "labels": labels}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, [], made)


def _tables(source: Path) -> list[Path]:
    """Return the shards of the table, in order. Raises InvalidInput."""
    folders = [folder for folder in (source, source / "data") if is_folder(folder)]
    shards = [sorted(folder.glob("*.parquet")) for folder in folders]
    found = [source] if source.is_file() else next(filter(None, shards), list[Path]())
    if not found:
        raise InvalidInput(
            source, ["has no table: expected a .parquet, .jsonl or .json file, or a folder with parquet"]
        )
    return found


def _rows(table: Path) -> Sequence[Row]:
    return parquet_rows(table) if table.suffix == ".parquet" else list(read_rows(table))


def _base(table: Path) -> Path:
    return table.parent.parent if table.parent.name == "data" else table.parent


class Reader:
    """Makes a draft of each row."""

    def __init__(self, settings: Settings, beside: Beside) -> None:
        self._settings, self._beside = settings, beside

    def drafts(self, rows: Sequence[Row], options: ImportOptions) -> Iterator[Draft]:
        for done, row in enumerate(rows, 1):
            yield self._draft(row)
            if options.on_item is not None:
                options.on_item(done, len(rows))

    def _draft(self, row: Row) -> Draft:
        given = (row.values or {}).get("task_id")
        draft = Draft(key_text(given) if isinstance(given, str) else row.name)
        if row.values is None:
            draft.quarantine("bad_row", row.name, row.trouble)
            return draft
        if unstorable(row.values):
            draft.quarantine("unstorable_text", row.name, "a text has a NUL or a lone surrogate")
        try:
            self._read(Item.model_validate(row.values), draft)
        except ValidationError as error:
            for where, what in complaints(error):
                draft.quarantine("bad_item", f"{row.name}{where}", what)
        except OSError as error:
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))
        return draft

    def _read(self, item: Item, draft: Draft) -> None:
        contents = self._beside.contents
        named = [(path, f"{REFERENCES}/{shown(path, REFERENCES)}") for path in item.reference_files or []]
        visible = list(self._beside.take(named, draft))
        hidden = self._deliverables(item, draft)
        compared = bool(hidden)
        judged = None if not item.rubric_json else rubrics_of(item.rubric_json, draft)
        if judged is not None:
            hidden.append(contents.make_json(RUBRICS, judged))
        if item.rubric_pretty:
            hidden.append(contents.make("source/rubric.txt", item.rubric_pretty.encode("utf-8", "replace")))
        hidden.append(contents.make_json("source/references.json", item.addresses()))
        graders = self._graders(draft, compared=compared, judged=judged is not None)
        if draft.status != "quarantined":
            draft.task = self._task(item, draft, visible, hidden, graders)

    def _deliverables(self, item: Item, draft: Draft) -> list[dict[str, Any]]:
        """Return the expert's work as hidden files; a part of it is no reference, and is left out."""
        named = [(path, f"{SOLUTION}/{shown(path, DELIVERABLES)}") for path in item.deliverable_files or []]
        apart = Draft(draft.key)
        found = list(self._beside.take(named, apart))
        for problem in apart.problems:
            draft.note(problem["type"], problem["where"], problem["detail"])
        if not found or apart.problems:
            draft.note("no_reference_solution", DELIVERABLES, "the expert's work is not here as a whole: none is used")
            return []
        return found

    def _graders(self, draft: Draft, *, compared: bool, judged: bool) -> list[dict[str, Any]]:
        s = self._settings
        possible = {"pairwise": compared and s.grader != "rubric", "rubric_chain": judged and s.grader != "pairwise"}
        methods = [method for method in METHODS if possible[method]]
        if not methods:
            draft.quarantine("nothing_to_grade_by", "", "has neither the expert's work nor rubrics that can be used")
        if s.judge is None:
            wanted = " or ".join(methods) or "any"
            draft.note("grader_later", "", f"no judge is named: option judge, or a grading plan of method {wanted}")
            return []
        own = {"pairwise": {"reference": SOLUTION}, "rubric_chain": {"rubrics": RUBRICS}}
        return [{"method": m, "settings": {**own[m], "judges": [{"model": s.judge}]}} for m in methods]

    def _task(
        self,
        item: Item,
        draft: Draft,
        visible: list[dict[str, Any]],
        hidden: list[dict[str, Any]],
        graders: list[dict[str, Any]],
    ) -> dict[str, Any]:
        return {
            "name": f"{NAME}/{slug(draft.key)}",
            "instruction": _instruction(item.prompt, [str(ref["path"]) for ref in visible]),
            "visible": visible,
            "hidden": hidden,
            "environment": self._settings.environment or "workbench_full",
            "limits": self._settings.limits(LIMITS),
            "facets": {"sector": item.sector, "occupation": item.occupation, "reference_files": float(len(visible))},
            "labels": {},
            **({"graders": graders} if graders else {}),
        }


def _instruction(prompt: str, paths: list[str]) -> str:
    listed = "".join(f"- /workspace/{path}\n" for path in paths)
    given = f"Files that you are given:\n{listed}\n" if paths else ""
    return f"{prompt.rstrip()}\n\n{given}{OUTPUT_RULE}\n"

"""Reads a CSV, TSV, JSON, JSONL or parquet file: a row is a task.

With an answer method ``exact`` grades it: the agent writes ``output/answer.json``. With rubrics method ``rubric_chain`` does, by
option ``judge`` or a grading plan. Both together are two gradings.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from workstead.importers.assembly import assemble, imported
from workstead.importers.beside import Beside
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft, key_text, slug
from workstead.importers.fields import complaints
from workstead.importers.files import Contents, Entry
from workstead.importers.mapping import FieldMap, Rule, read_mapping
from workstead.importers.parquet import parquet_rows
from workstead.importers.rows.columns import FIELDS, REQUIRED, Fields
from workstead.importers.rows.gradings import answer_rule, rubrics_of
from workstead.importers.rows.telling import OUTPUT_RULE, answer_told, facets_of, instruction_of, price_of
from workstead.importers.settings import CommonSettings, parse_settings, settings_help
from workstead.importers.tables import Row, read_rows
from workstead.importers.untrusted import absurdities, unstorable
from workstead.task_dir import InvalidInput

NAME, VERSION = "rows", "1"
RUBRICS, EXPECTED, ANSWER = "rubrics.json", "expected.json", "output/answer.json"
LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "memory_bytes": 2 << 30, "disk_bytes": 2 << 30}
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
NO_MERGES: dict[str, list[str]] = {}
MAX_GROUPINGS = 32


class Settings(CommonSettings):
    mapping: Path | None = None
    """JSON or TOML file: our field → column, pointer or constant; default: columns that are called as our fields."""
    files: Path | None = None
    """Folder that paths of files are relative to; default: the one that the source is in."""
    judge: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$")
    """Model of the catalogue that judges by the rubrics."""


class RowsImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        mapping = None if settings.mapping is None else read_mapping(settings.mapping, FIELDS, REQUIRED)
        parquet = source.suffix.lower() == ".parquet"
        rows = parquet_rows(source) if parquet else list(read_rows(source, mapping.rows if mapping else ""))
        mapping = mapping or _own_names(source, rows)
        made, contents = Contents.new()
        try:
            contents.take(Entry(source.name, source), "", source.parent)
            reader = Reader(settings, mapping, Beside(settings.files or source.parent, contents))
            drafts = list(reader.drafts(rows, options))
            fields = {"policies": POLICIES, "groupings": _groupings(drafts), "labels": {}}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, _unused(mapping, rows), made)


def _columns(rows: Sequence[Row]) -> set[str]:
    return {name for row in rows for name in row.values or ()}


def _own_names(source: Path, rows: Sequence[Row]) -> FieldMap:
    """Raises InvalidInput."""
    columns = _columns(rows)
    own = sorted(name for name in columns if name in FIELDS or name.startswith("facet."))
    if missing := [name for name in REQUIRED if name not in own]:
        raise InvalidInput(
            source, [f"no column is called {' or '.join(missing)}: option mapping says what they are called"]
        )
    return FieldMap({name: Rule.model_validate(name) for name in own})


def _unused(mapping: FieldMap, rows: Sequence[Row]) -> list[str]:
    used = {source for rule in mapping.rules.values() for source in rule.source}
    heads = {source[1:].partition("/")[0] for source in used if source.startswith("/")}
    left = sorted(_columns(rows) - used - heads)
    return [f"column {name[:100]!r} is not used" for name in left[:100]]


def _groupings(drafts: Sequence[Draft]) -> list[dict[str, Any]]:
    names = sorted({name for draft in drafts if draft.task for name in draft.task["facets"]})
    return [{"name": slug(name), "facet": name, "merges": NO_MERGES} for name in names[:MAX_GROUPINGS]]


class Reader:
    """Makes a draft of each row."""

    def __init__(self, settings: Settings, mapping: FieldMap, beside: Beside) -> None:
        self._settings, self._mapping, self._beside = settings, mapping, beside

    def drafts(self, rows: Sequence[Row], options: ImportOptions) -> Iterator[Draft]:
        for done, row in enumerate(rows, 1):
            yield self._draft(row)
            if options.on_item is not None:
                options.on_item(done, len(rows))

    def _draft(self, row: Row) -> Draft:
        draft = Draft(row.name)
        if row.values is None:
            draft.quarantine("bad_row", row.name, row.trouble)
            return draft
        values, troubles = self._mapping.apply(row.values, row.name)
        for trouble in troubles:
            draft.quarantine("bad_field", trouble.where, trouble.detail)
        given = values.get("id")
        if isinstance(given, str | int) and not isinstance(given, bool):
            draft.key = key_text(str(given))
        for where in absurdities(values):
            draft.quarantine("not_finite", f"{row.name}, field {where[1:]}", "Infinity, or a number of absurd length")
        if unstorable(values):
            draft.quarantine("unstorable_text", row.name, "a text has a NUL or a lone surrogate")
        try:
            self._read(Fields.model_validate(values), values, draft)
        except ValidationError as error:
            for where, what in complaints(error):
                draft.quarantine("bad_field", f"{row.name}, field {where[1:]}", what)
        except OSError as error:
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))
        return draft

    def _read(self, fields: Fields, values: Mapping[str, Any], draft: Draft) -> None:
        visible = list(self._beside.take([(path, path) for path in fields.files or []], draft))
        solution = [(path, f"solution/output/{path.rpartition('/')[2]}") for path in fields.solution or []]
        hidden = list(self._beside.take(solution, draft))
        graders, told = self._graded(fields, hidden, draft)
        facets = facets_of(values, draft)
        price = price_of(fields, draft)
        if draft.status == "quarantined":
            return
        s = self._settings
        draft.task = {
            "name": f"{NAME}/{slug(draft.key)}",
            "instruction": instruction_of(fields.prompt, [str(ref["path"]) for ref in visible], told),
            "visible": visible,
            "hidden": hidden,
            "environment": s.environment or "base",
            "limits": s.limits(LIMITS),
            "facets": facets,
            "price": price,
            "human_time_s": None if fields.human_hours is None else float(fields.human_hours * 3600),
            "labels": {},
            "graders": graders,
        }

    def _graded(self, fields: Fields, hidden: list[dict[str, Any]], draft: Draft) -> tuple[list[dict[str, Any]], str]:
        """Return the gradings and what the agent is told of where its work belongs; adds the hidden files."""
        contents, graders, told = self._beside.contents, list[dict[str, Any]](), OUTPUT_RULE
        if fields.answer is not None and (found := answer_rule(fields, draft)) is not None:
            rule, value = found
            hidden.append(contents.make_json(EXPECTED, {"answer": value}))
            if not fields.solution:
                hidden.append(contents.make_json(f"solution/{ANSWER}", {"answer": value}))
            exact = {"file": ANSWER, "expected": {"hidden": EXPECTED}, "answers": [rule]}
            graders.append({"method": "exact", "settings": exact})
            told = answer_told(rule["type"])
        if fields.rubric is not None and (rubrics := rubrics_of(fields.rubric, draft)) is not None:
            hidden.append(contents.make_json(RUBRICS, rubrics))
            if self._settings.judge is not None:
                judged = {"rubrics": RUBRICS, "judges": [{"model": self._settings.judge}]}
                graders.append({"method": "rubric_chain", "settings": judged})
        if not graders:
            draft.note(
                "grader_later", "", "a grading plan says how it is graded; option judge, where there are rubrics"
            )
        return graders, told

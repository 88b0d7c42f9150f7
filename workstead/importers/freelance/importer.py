"""Reads a JSON array of items, of one shape or of both mixed, with the bare NaN of the released file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from workstead.importers.assembly import MAX_ITEMS, assemble, imported
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft, key_text
from workstead.importers.fields import complaints
from workstead.importers.files import Contents, Entry
from workstead.importers.freelance.disputes import of_answers, of_programs
from workstead.importers.freelance.review import read_disputed, read_rules
from workstead.importers.freelance.shapes import Answers, Program, shape_of
from workstead.importers.freelance.tasks import Reviewed, Settings, TaskMaker, gold_is_a_choice
from workstead.importers.settings import parse_settings, settings_help
from workstead.importers.untrusted import Broken, absurdities, read_elements, unstorable
from workstead.task_dir import InvalidInput

NAME, VERSION = "freelance", "1"
MAX_TOLD = 20
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "grade", "clock": "wall", "missing": "zero"}
NO_MERGES: dict[str, list[str]] = {}
GROUPINGS = [{"name": facet, "facet": facet, "merges": NO_MERGES} for facet in ("category", "pay_type", "shape")]


class FreelanceImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        if settings.visibility == "rule_only" and settings.rules is None:
            raise InvalidInput(
                Path("options"), ["visibility=rule_only needs rules=FILE: rules are reviewed, not taken over"]
            )
        reviewed = Reviewed(read_disputed(settings.disputed), read_rules(settings.rules))
        values = _items(source)
        made, contents = Contents.new()
        try:
            contents.take(Entry(source.name, source), source.name, source.parent)
            reader = Reader(TaskMaker(settings, reviewed, contents), reviewed)
            drafts = list(reader.drafts(values, options))
            fields = {"policies": POLICIES, "groupings": GROUPINGS, "labels": _labels(settings)}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, _unknown_ids(reviewed, drafts), made)


class Reader:
    """Makes a draft of each element of the array."""

    def __init__(self, maker: TaskMaker, reviewed: Reviewed) -> None:
        self._maker, self._reviewed = maker, reviewed

    def drafts(self, values: list[Any], options: ImportOptions) -> Iterator[Draft]:
        for i, value in enumerate(values):
            yield self._draft(i, value)
            if options.on_item is not None:
                options.on_item(i + 1, len(values))

    def _draft(self, index: int, value: Any) -> Draft:
        draft = Draft(_key(index, value))
        if isinstance(value, Broken):
            draft.quarantine("not_json", "", value.why)
            return draft
        for where in list(absurdities(value))[:MAX_TOLD]:
            draft.quarantine("not_finite", where, "Infinity, or a number of absurd length")
        if unstorable(value):
            draft.quarantine("unstorable_text", "", "a text has a NUL or a lone surrogate")
        try:
            self._read(value, draft)
        except ValidationError as error:
            for where, what in list(complaints(error))[:MAX_TOLD]:
                draft.quarantine("bad_item", where, what)
        except OSError as error:
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))
        if draft.key in self._reviewed.disputed:
            draft.dispute("disputed", "", self._reviewed.disputed[draft.key])
        return draft

    def _read(self, value: Any, draft: Draft) -> None:
        match shape_of(value):
            case "a":
                self._program(Program.model_validate(value), draft)
            case "b":
                self._answers(Answers.model_validate(value), draft)
            case _:
                draft.quarantine("unknown_shape", "", "an item has `tests`, or `metadata` and `test_content`")

    def _program(self, item: Program, draft: Draft) -> None:
        if not item.tests:
            draft.quarantine("no_tests", "/tests", "an item without tests cannot be solved or failed")
            return
        for type, where, detail in of_programs(item.tests):
            draft.dispute(type, where, detail)
        self._keep(self._maker.program(item, draft), draft)

    def _answers(self, item: Answers, draft: Draft) -> None:
        for where in gold_is_a_choice(item):
            draft.quarantine("gold_is_no_choice", where)
        for type, where, detail in of_answers(item):
            draft.dispute(type, where, detail)
        self._keep(self._maker.answers(item, draft), draft)

    def _keep(self, task: dict[str, Any], draft: Draft) -> None:
        if draft.status != "quarantined":
            draft.task = task


def _items(source: Path) -> list[Any]:
    if not source.is_file():
        raise InvalidInput(source, ["is not a file; expected the JSON array of items"])
    value = read_elements(source)
    if not isinstance(value, list):
        raise InvalidInput(source, ["is not an array of items"])
    items = cast("list[Any]", value)
    if not any(shape_of(item) for item in items):
        raise InvalidInput(source, ["no element has `tests`, or `metadata` and `test_content`"])
    if len(items) > MAX_ITEMS:
        raise InvalidInput(source, [f"has {len(items)} items; at most {MAX_ITEMS} are allowed"])
    return items


def _key(index: int, value: Any) -> str:
    """Return the item's own id, else its place in the array."""
    found: Any = None
    if isinstance(value, dict):
        item = cast("dict[str, Any]", value)
        metadata = item.get("metadata")
        found = item.get("id") if "tests" in item else None
        if found is None and isinstance(metadata, dict):
            found = cast("dict[str, Any]", metadata).get("project_id")
    known = isinstance(found, int | str) and not isinstance(found, bool) and str(found)
    return key_text(str(found)) if known else f"item-{index + 1}"


def _labels(settings: Settings) -> dict[str, str]:
    return {"visibility": settings.visibility, "suite": settings.suite, "comparator": settings.comparator}


def _unknown_ids(reviewed: Reviewed, drafts: list[Draft]) -> list[str]:
    keys = {draft.key for draft in drafts}
    named = {"disputed": set(reviewed.disputed), "rules": set(reviewed.rules)}
    return [f"{option}: no item has the id {id!r}" for option, ids in named.items() for id in sorted(ids - keys)[:100]]

"""JobBench as parquet: a table per split, nine columns; reference files lie in a folder, their addresses are only kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from workstead.importers.contract import ImportOptions
from workstead.importers.drafts import Draft, key_text
from workstead.importers.fields import Filled, Loose, Text, complaints
from workstead.importers.files import MAX_FILES, Contents, Entry, is_folder, locate, path_trouble
from workstead.importers.jobbench.making import CARD, FOLDER, INSTRUCTIONS, Found, TaskMaker
from workstead.importers.jobbench.pins import Pins
from workstead.importers.jobbench.rubrics import FILE as RUBRICS
from workstead.importers.jobbench.rubrics import parse_rubrics
from workstead.importers.jobbench.settings import MADE
from workstead.importers.parquet import parquet_rows
from workstead.importers.tables import Row
from workstead.importers.untrusted import unstorable

TABLES = {"tasks.parquet": "main", "main.parquet": "main", "easy.parquet": "easy"}
ROOTS = {"main": "dataset", "easy": "dataset_easy"}
_Path = Annotated[str, Field(min_length=1, max_length=1_000)]
_Paths = Annotated[list[_Path], Field(max_length=MAX_FILES)]


class Item(Loose):
    task_id: Filled
    occupation: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=128)]
    task_num: Annotated[int, Field(ge=1, le=1_000_000)]
    prompt: Filled
    reference_files: _Paths = Field(default_factory=list[str])
    reference_file_urls: list[str] | None = None
    reference_file_hf_uris: list[str] | None = None
    rubric_json: Text
    task_card: Text | None = None


@dataclass(frozen=True, slots=True)
class Table:
    split: str
    path: Path


def find_tables(source: Path) -> list[Table]:
    """Return the tables of the splits, of a folder (or its ``data``) or as one file; none: this is no parquet source."""
    if source.suffix == ".parquet":
        return [Table(TABLES.get(source.name, "main"), source)]
    for folder in (source, source / "data"):
        if is_folder(folder):
            found = [Table(split, folder / name) for name, split in TABLES.items() if (folder / name).is_file()]
            if found:
                return found
    return []


class RowReader:
    """Makes a draft of each row; ``base`` is where reference files lie."""

    def __init__(self, base: Path, maker: TaskMaker, contents: Contents, pins: Pins) -> None:
        self._base, self._maker, self._contents, self._pins = base, maker, contents, pins

    def drafts(self, tables: list[Table], options: ImportOptions) -> Iterator[Draft]:
        """Raises InvalidInput for a table that cannot be read, OSError."""
        rows = [(table, row) for table in tables for row in parquet_rows(table.path)]
        digests = {table.path: self._digest(table) for table in tables}
        for done, (table, row) in enumerate(rows, 1):
            draft = Draft(f"{table.split}--{key_text(str((row.values or {}).get('task_id')))}")
            self._pins.check(table.path.name, digests[table.path], draft)
            self._draft(table.split, row, draft)
            yield draft
            if options.on_item is not None:
                options.on_item(done, len(rows))

    def _digest(self, table: Table) -> str:
        return str(self._contents.take(Entry(table.path.name, table.path), "", table.path.parent)["sha256"])

    def _draft(self, split: str, row: Row, draft: Draft) -> None:
        if unstorable(row.values):
            draft.quarantine("unstorable_text", row.name, "a text has a NUL or a lone surrogate")
        try:
            self._read(split, Item.model_validate(row.values), row, draft)
        except ValidationError as error:
            for where, what in complaints(error):
                draft.quarantine("bad_item", f"{row.name}{where}", what)
        except OSError as error:
            draft.task = None
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))

    def _read(self, split: str, item: Item, row: Row, draft: Draft) -> None:
        name = f"task{item.task_num}"
        draft.key = f"{split}--{item.occupation}--{name}"
        if item.task_id != f"{item.occupation}__{name}":
            draft.quarantine("bad_task_name", row.name, f"task_id is not {item.occupation}__{name}")
        make = self._contents.make
        visible = [make(f"{FOLDER}/{INSTRUCTIONS}", item.prompt.encode("utf-8", "replace"))]
        visible += self._references(split, item, name, draft)
        hidden = [make(f"source/{RUBRICS}", item.rubric_json.encode("utf-8", "replace"))]
        if item.task_card:
            hidden.append(make(f"source/{CARD}", item.task_card.encode("utf-8", "replace")))
        hidden.append(self._contents.make_json("source/references.json", _addresses(item)))
        usable = draft.status != "quarantined"
        if (rubrics := parse_rubrics(item.rubric_json.encode("utf-8", "replace"), draft)) is not None:
            hidden.append(self._contents.make_json(MADE, rubrics))
        if usable:
            found = Found(split, item.occupation, name, item.prompt, visible, hidden, None)
            draft.task = self._maker.task(found, draft)

    def _references(self, split: str, item: Item, name: str, draft: Draft) -> Iterator[dict[str, Any]]:
        taken = {INSTRUCTIONS.casefold()}
        for given in item.reference_files:
            shown = given.rpartition(f"{FOLDER}/")[2]
            if trouble := path_trouble(given):
                draft.quarantine("bad_file", given, trouble)
            elif shown.casefold() in taken:
                draft.quarantine("bad_file", given, "has the name of another file of the task")
            else:
                taken.add(shown.casefold())
                published = f"{ROOTS[split]}/{item.occupation}/{name}/{FOLDER}/{shown}"
                yield from self._file(given, published, f"{FOLDER}/{shown}", draft)

    def _file(self, given: str, published: str, path: str, draft: Draft) -> Iterator[dict[str, Any]]:
        file = locate(self._base, (given, published))
        if file is None:
            draft.quarantine("missing_file", given, "is not below the folder of reference files")
            return
        ref = self._contents.take(Entry(given, file), path, self._base)
        self._pins.check(published, str(ref["sha256"]), draft)
        yield ref


def _addresses(item: Item) -> dict[str, Any]:
    """Recorded, and never fetched."""
    return {
        "files": item.reference_files,
        "urls": item.reference_file_urls or [],
        "hf_uris": item.reference_file_hf_uris or [],
    }

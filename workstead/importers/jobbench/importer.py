"""Reads JobBench as it is published: a folder per task, or a row of parquet per task with the reference files beside it.

The tasks carry their rubrics (``hidden/rubrics.json``). With option ``judge`` method ``rubric_chain`` grades them; without it each
item says ``grader_later``: a grading plan brings the judges.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from workstead.importers.assembly import assemble, imported
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft
from workstead.importers.files import Contents
from workstead.importers.jobbench.categories import groupings, read_categories
from workstead.importers.jobbench.folders import FolderReader
from workstead.importers.jobbench.layout import find_tasks
from workstead.importers.jobbench.making import TaskMaker
from workstead.importers.jobbench.pins import Pins, read_pins
from workstead.importers.jobbench.rows import RowReader, find_tables
from workstead.importers.jobbench.settings import NAME, POLICIES, VERSION, Settings
from workstead.importers.settings import parse_settings, settings_help

Read = Callable[[Contents], list[Draft]]


class JobBenchImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        mapping = read_categories(settings.categories)
        pins = read_pins(settings.pins, settings.revision)
        settings = settings.model_copy(update={"revision": settings.revision or pins.revision})
        maker = TaskMaker(settings, mapping)
        notes: list[str] = []
        read = _reader(source, settings, maker, pins, notes, options)
        made, contents = Contents.new()
        try:
            drafts = read(contents)
            fields = {"policies": POLICIES, "groupings": groupings(mapping), "labels": settings.labels}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        return imported(manifest, contents, [*notes, *pins.unseen(("dataset/", "dataset_easy/"))], made)


def _reader(
    source: Path, settings: Settings, maker: TaskMaker, pins: Pins, notes: list[str], options: ImportOptions
) -> Read:
    """Return what reads this source. Raises InvalidInput where nothing is recognised, OSError."""
    if tables := find_tables(source):
        base = settings.files or tables[0].path.parent
        return lambda contents: list(RowReader(base, maker, contents, pins).drafts(tables, options))
    folders = find_tasks(source, notes)
    return lambda contents: list(FolderReader(source, maker, contents, pins).drafts(folders, options))

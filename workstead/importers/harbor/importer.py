"""Reads task directories. Images are built by the operator: the importer says by which command, and by what name.

A task that wants what a sandbox has not (a root to write to, services, a network in its verifier) is quarantined as
``unsupported``, with the reason.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from workstead.importers.assembly import assemble, imported
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.drafts import Draft, key_text
from workstead.importers.files import Contents
from workstead.importers.harbor.layout import find_tasks, key_of, read_images
from workstead.importers.harbor.making import TaskMaker
from workstead.importers.harbor.settings import NAME, POLICIES, VERSION, Settings
from workstead.importers.settings import network_fields, parse_settings, settings_help

NO_MERGES: dict[str, list[str]] = {}
GROUPINGS = [{"name": facet, "facet": facet, "merges": NO_MERGES} for facet in ("category", "difficulty")]


class HarborImporter:
    name, version = NAME, VERSION

    def settings_help(self) -> Mapping[str, str]:
        return settings_help(Settings)

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """See :class:`workstead.importers.contract.Importer`."""
        settings = parse_settings(Settings, options.settings)
        images = read_images(settings.images)
        web = network_fields("web", settings)
        notes: list[str] = []
        folders = find_tasks(source, notes)
        made, contents = Contents.new()
        try:
            maker = TaskMaker(source, settings, images, web, contents)
            drafts = list(_drafts(source, folders, maker, options))
            labels = {"verifier": settings.verifier, "network": settings.network}
            fields = {"policies": POLICIES, "groupings": GROUPINGS, "labels": labels}
            manifest = assemble((NAME, VERSION), options, settings, drafts, fields, contents)
        except BaseException:
            made.cleanup()
            raise
        unknown = sorted(set(images) - {draft.key for draft in drafts})
        notes += [f"images: no task is called {name[:200]!r}" for name in unknown[:100]]
        return imported(manifest, contents, notes, made)


def _drafts(root: Path, folders: list[Path], maker: TaskMaker, options: ImportOptions) -> Iterator[Draft]:
    for done, folder in enumerate(folders, 1):
        draft = Draft(key_text(key_of(folder, root)))
        try:
            maker.fill(folder, draft)
        except OSError as error:
            draft.task = None
            draft.quarantine("unreadable", Path(str(error.filename or "")).name, error.strerror or str(error))
        yield draft
        if options.on_item is not None:
            options.on_item(done, len(folders))

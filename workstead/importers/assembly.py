"""From drafts of items to a manifest."""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workstead.importers.contract import Delivered, Imported, ImportOptions
from workstead.importers.drafts import Draft, unique_keys
from workstead.importers.files import Contents, digest_of
from workstead.importers.settings import CommonSettings, head_fields
from workstead.task_dir import InvalidInput

MAX_ITEMS = 20_000
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}\Z")


def assemble(
    importer: tuple[str, str],
    options: ImportOptions,
    settings: CommonSettings,
    drafts: Iterable[Draft],
    fields: Mapping[str, Any],
    contents: Contents,
) -> dict[str, Any]:
    """Return the manifest of everything read; ``fields`` are the importer's own of the head. Raises InvalidInput."""
    items = [draft.item() for draft in unique_keys(drafts)]
    if not 0 < len(items) <= MAX_ITEMS:
        raise InvalidInput(Path("source"), [f"has {len(items)} items; 1 to {MAX_ITEMS} are allowed"])
    source = {
        "importer": importer[0],
        "importer_version": importer[1],
        "uri": settings.uri,
        "revision": settings.revision,
        "files_digest": contents.digest(),
    }
    name = options.name or importer[0]
    head = {"name": name, "source": source, **head_fields(settings), **fields}
    version = options.version or (settings.revision or digest_of([head, items]))[:12]
    _check_names(name, version)
    return {**head, "version": version, "items": items}


def _check_names(name: str, version: str) -> None:
    problems: list[str] = []
    if not _NAME.match(name):
        problems.append(f"--name {name!r}: 1 to 128 letters, digits and ._/-, the first a letter or digit")
    if not _VERSION.match(version):
        problems.append(f"--version {version!r}: 1 to 64 letters, digits and ._+-, the first a letter or digit")
    if problems:
        raise InvalidInput(Path("options"), problems)


def imported(
    manifest: dict[str, Any],
    contents: Contents,
    notes: list[str],
    made: tempfile.TemporaryDirectory[str],
    delivered: Sequence[Delivered] = (),
) -> Imported:
    works = {ref["sha256"]: contents.files[ref["sha256"]] for work in delivered for ref in work.files}
    return Imported(manifest, contents.referred(manifest), notes, made, list(delivered), works)

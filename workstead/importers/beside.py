"""Files that a row of a table names: taken from a folder beside it, never fetched."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workstead.importers.drafts import Draft
from workstead.importers.files import MAX_FILES, Contents, Entry, locate, path_trouble


@dataclass(frozen=True, slots=True)
class Beside:
    base: Path
    """Folder that paths are relative to."""
    contents: Contents

    def take(self, named: list[tuple[str, str]], draft: Draft) -> Iterator[dict[str, Any]]:
        """Yield a reference of each (path below the folder, path in the task); what cannot be had quarantines.

        Raises OSError.
        """
        if len(named) > MAX_FILES:
            draft.quarantine("too_many_files", "", f"names {len(named)} files; {MAX_FILES} are allowed")
            return
        for given, path in _once(named, draft):
            file = locate(self.base, (given,))
            if file is None:
                draft.quarantine("missing_file", given, "is no file below the folder of files")
            else:
                yield self.contents.take(Entry(given, file), path, self.base)


def _once(named: list[tuple[str, str]], draft: Draft) -> Iterator[tuple[str, str]]:
    """Yield what is usable as it is named; two files at one place are an error, the same file twice is none."""
    places: dict[str, str] = {}
    for given, path in named:
        if trouble := path_trouble(given) or path_trouble(path):
            draft.quarantine("bad_file", given, trouble)
        elif places.setdefault(path, given) != given:
            draft.quarantine("bad_file", given, f"has the place of {places[path]}")
    yield from ((given, path) for path, given in places.items())

"""What an importer gives: a benchmark's manifest and where the bytes of its files lie.

An importer reads local files only, writes nowhere but into the folder that :class:`Imported` owns, and never gives up
because of one item: what is wrong with an item is written down with it (``problems``), and its status follows:

- ``ok``: usable; problems are remarks,
- ``disputed``: usable, but its answers are contested,
- ``quarantined``: not run unless asked for by key; without a task where none could be made of it.

Whatever the source says is data: a name, path, number or text of it may be hostile, and is checked before it is used.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user said."""

    name: str | None = None
    """Of the benchmark; null takes the importer's own."""
    version: str | None = None
    """Null takes the first 12 characters of the revision, else of a digest of everything that was read."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """The importer's own settings and those of :class:`workstead.importers.settings.CommonSettings`, as texts."""
    on_item: Callable[[int, int], None] | None = None
    """Called with (items read, items in all) after each item."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What somebody outside delivered for an item: to be graded with no run of ours."""

    key: str
    """Of the item."""
    files: list[dict[str, Any]]
    """References: path as delivered, sha256, size_bytes."""


@dataclass(slots=True)
class Imported:
    """A benchmark ready to be sent. Owns a folder with the files that the importer made; use as a context manager."""

    manifest: dict[str, Any]
    """A ``BenchmarkManifest`` (``api_schema/benchmark_manifest.schema.json``) as JSON values."""
    files: dict[str, Path]
    """sha256 → a file with that content, of the source or of the owned folder."""
    notes: list[str]
    """What was left unread and is no item's problem, in words."""
    made: tempfile.TemporaryDirectory[str]
    delivered: list[Delivered] = field(default_factory=list[Delivered])
    """Of sources that bring works of others along."""
    works: dict[str, Path] = field(default_factory=dict[str, Path])
    """sha256 → a file of ``delivered``."""

    @property
    def items(self) -> list[dict[str, Any]]:
        return self.manifest["items"]

    def counts(self) -> Counter[str]:
        """Return status → number of items."""
        return Counter(str(item["status"]) for item in self.items)

    def close(self) -> None:
        self.made.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Importer(Protocol):
    name: str
    version: str
    """Raised whenever the same source would give another manifest."""

    def read(self, source: Path, options: ImportOptions) -> Imported:
        """Read a source as it lies on disk.

        Raises InvalidInput when nothing of the source can be recognised, when an option is unknown or not usable, and
        when the set as a whole breaks a bound (number of items, size of the source file). Raises OSError when the
        source cannot be read at all. A problem of a single item never raises.
        """
        ...

    def settings_help(self) -> Mapping[str, str]:
        """Return each setting with one line on what it does."""
        ...

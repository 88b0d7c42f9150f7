"""A source read by an importer: with progress, and what was found wrong with its items as a table and as a file."""

import json
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from workstead.cli.common import err, line, out
from workstead.cli.tables import plain_table
from workstead.errors import WorksteadError
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.registry import IMPORTERS, importer_for

MAX_ROWS = 200
"""Items with problems that are shown; the report file has all."""
STATUSES = ("ok", "disputed", "quarantined")


class UnknownImporter(WorksteadError):
    """No importer has this name."""


@contextmanager
def progress(what: str) -> Generator[Progress]:
    """Show a bar on standard error while it is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as shown:
        shown.add_task(what, total=None)
        yield shown


def read_source(kind: str, source: Path, options: ImportOptions) -> Imported:
    """Read a source. Raises UnknownImporter, InvalidInput, OSError."""
    importer = importer_for(kind)
    if importer is None:
        raise UnknownImporter(f"no importer is called {kind!r}; there are: {', '.join(sorted(IMPORTERS))}")
    with progress("reading") as shown:
        bar = shown.task_ids[0]
        counted = ImportOptions(
            options.name,
            options.version,
            options.settings,
            lambda done, all: shown.update(bar, completed=done, total=all),
        )
        return importer.read(source, counted)


def show_validation(imported: Imported) -> None:
    """Print counts, each item that is not ok with its reasons, and how often each remark was made of the others."""
    counts = imported.counts()
    out.print(plain_table(("status", "items"), [(status, counts[status]) for status in STATUSES]))
    bad = [item for item in imported.items if item["status"] != "ok"]
    if bad:
        out.print(plain_table(("item", "status", "reasons"), [_row(item) for item in bad[:MAX_ROWS]]))
    if len(bad) > MAX_ROWS:
        line(f"… and {len(bad) - MAX_ROWS} more; --report FILE has them all", "yellow")
    remarks = Counter(p["type"] for item in imported.items if item["status"] == "ok" for p in item["problems"])
    if remarks:
        out.print(plain_table(("remark on items that are ok", "times"), remarks.most_common()))
    for note in imported.notes[:MAX_ROWS]:
        line(note, "dim")


def _row(item: Mapping[str, Any]) -> tuple[str, str, str]:
    return item["key"], item["status"], reasons(item["problems"])


def reasons(problems: list[dict[str, Any]], most: int = 3) -> str:
    """Return problems in one line."""
    said = [": ".join(part for part in (p["type"], p.get("where"), p.get("detail")) if part) for p in problems]
    more = [f"{len(said) - most} more"] if len(said) > most else []
    return "; ".join([*said[:most], *more])


def validation(imported: Imported) -> dict[str, Any]:
    """Return the report as JSON: what was found of every item, without the tasks."""
    items = [{k: item[k] for k in ("key", "status", "problems")} for item in imported.items]
    manifest = imported.manifest
    return {
        "name": manifest["name"],
        "version": manifest["version"],
        "source": manifest["source"],
        "counts": {status: imported.counts()[status] for status in STATUSES},
        "notes": imported.notes,
        "items": items,
    }


def write_report(imported: Imported, path: Path) -> None:
    path.write_text(json.dumps(validation(imported), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")

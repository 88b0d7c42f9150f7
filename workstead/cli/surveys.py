"""What `forecasts` and `annotations` have in common: models named on the command line, waiting, rows of a file."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from workstead.cli.common import fail
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client


def model_spec(text: str, *, no_temperature: bool) -> dict[str, Any]:
    """Return a model of the catalogue as it is asked: ``model`` or ``model:effort``."""
    model, _, effort = text.partition(":")
    return {"model": model, "effort": effort or None, **({"temperature": None} if no_temperature else {})}


def wait(client: Client, operation_id: str | None) -> None:
    """Wait for the operation, and tell how far it is. Fails if it did not succeed."""
    ended = client.operations.wait(str(operation_id), _progress)
    if ended.state != "succeeded":
        raise fail(f"{ended.id}: {ended.state}; `workstead operations show {ended.id}` says more")


def state_words(state: str, because: str | None) -> str:
    """Return how a set stands, and why it stopped."""
    return state if because is None else f"{state}: {because}"


def cost_words(estimate: Mapping[str, Any]) -> str:
    """Return what asking is expected to cost."""
    return "cost unknown" if estimate.get("cost_usd") is None else f"about {estimate['cost_usd']} USD"


def json_lines(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON Lines. Fails with the line that is none."""
    with source.open(encoding="utf-8") as file:
        for n, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                value = json.loads(text)
            except ValueError as error:
                raise fail(f"{source}, line {n}: not JSON") from error
            if not isinstance(value, dict):
                raise fail(f"{source}, line {n}: not an object")
            yield cast("dict[str, Any]", value)


def csv_rows(source: Path, needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file with a heading. Fails where a column is missing, or a row is longer or shorter."""
    with source.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        try:
            missing = [name for name in needed if name not in (rows.fieldnames or ())]
            if missing:
                raise fail(f"{source}: no column {missing[0]!r}")
            for row in rows:
                if None in row or None in row.values():
                    raise fail(f"{source}, line {rows.line_num}: not as many cells as the heading has")
                yield row
        except (csv.Error, UnicodeDecodeError) as error:
            raise fail(f"{source}, line {rows.line_num + 1}: {error}") from error


def _progress(operation: Operation) -> None:
    note(f"{operation.id}: {operation.state} {operation.done}/{operation.total or '?'} {operation.unit}")

"""A table as a file: CSV, JSON or Parquet, written piece by piece."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import polars as pl

from service.domain.benchmarks import Policies
from service.domain.errors import TooLarge
from service.lifecycle.results.gathering import frames
from service.lifecycle.results.registry import Format
from service.reporting.frames import empty
from service.reporting.table_files import csv_bytes, json_rows
from service.store.database import Tx
from service.store.result_tables.scope import Scope

MOST_ROWS = 20_000_000
"""Of one file."""


async def write_table(
    tx: Tx, table: str, scope: Scope, policies: Mapping[str | None, Policies], format: Format, out: BinaryIO
) -> int:
    """Write the table to ``out``; return how many rows. Raises TooLarge ``too_many_rows``."""
    writer = _Parquet(table, out) if format == "parquet" else _Lines(table, format, out)
    written = 0
    try:
        async for part in frames(tx, table, scope, policies):
            written += part.height
            if written > MOST_ROWS:
                raise TooLarge("too_many_rows", f"a file has at most {MOST_ROWS} rows; take fewer evaluations")
            await asyncio.to_thread(writer.add, part)
        await asyncio.to_thread(writer.end)
    finally:
        writer.close()
    return written


class _Lines:
    """CSV, or a JSON list with one row in each line."""

    def __init__(self, table: str, format: Format, out: BinaryIO) -> None:
        self._table, self._json, self._out = table, format == "json", out
        self._rows = 0
        out.write(b"[\n" if self._json else csv_bytes(table, empty(table)))

    def add(self, part: pl.DataFrame) -> None:
        if not self._json:
            self._out.write(csv_bytes(self._table, part, head=False))
        elif part.height:
            text = ",\n".join(json_rows(self._table, part))
            self._out.write((",\n" if self._rows else "").encode() + text.encode())
        self._rows += part.height

    def end(self) -> None:
        if self._json:
            self._out.write(b"\n]\n" if self._rows else b"]\n")

    def close(self) -> None:
        return


class _Parquet:
    """The format wants its rows in large groups: they are kept on disk until all are there."""

    def __init__(self, table: str, out: BinaryIO) -> None:
        self._table, self._out, self._parts = table, out, 0
        self._folder = TemporaryDirectory(prefix="tables-")

    def _path(self, number: int) -> Path:
        return Path(self._folder.name, f"{number:08d}.arrow")

    def add(self, part: pl.DataFrame) -> None:
        part.write_ipc(self._path(self._parts))
        self._parts += 1

    def end(self) -> None:
        paths = [self._path(number) for number in range(self._parts)]
        whole = pl.scan_ipc(paths) if paths else empty(self._table).lazy()
        target = Path(self._folder.name, "table.parquet")
        whole.sink_parquet(target)
        with target.open("rb") as file:
            while data := file.read(1 << 20):
                self._out.write(data)

    def close(self) -> None:
        self._folder.cleanup()

"""Frames and files of result tables: the dictionary's columns and types, guarded cells, nulls, times."""

import csv
import io
import json
from datetime import UTC, date, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reporting.dictionary import TABLES, Column, Type
from service.reporting.frames import empty, frame, joined, schema
from service.reporting.table_files import GUARDED, csv_bytes, json_rows

_SAMPLE: dict[Type, Any] = {
    Type.TEXT: "plain", Type.INTEGER: 7, Type.NUMBER: 0.1, Type.BOOLEAN: True, Type.DATE: date(2026, 1, 2),
    Type.TIME: datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), Type.JSON: '{"a": [1]}',
}  # fmt: skip


def _row(table: str, **changes: Any) -> dict[str, Any]:
    return {column.name: _SAMPLE[column.type] for column in TABLES[table].columns} | changes


def _read(data: bytes) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(data.decode(), newline=""))]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_frame_with_and_without_rows(table: str) -> None:
    nothing: dict[str, Any] = {column.name: None for column in TABLES[table].columns}
    found = frame(table, [_row(table), nothing])
    assert dict(found.schema) == schema(table) == dict(empty(table).schema)
    assert joined(table, [found, empty(table)]).equals(found)
    (first, second) = _read(csv_bytes(table, found))
    assert [*first] == [column.name for column in TABLES[table].columns]
    assert set(second.values()) == {""}


@pytest.mark.parametrize("table", TABLES)
def test_the_dictionary_names_each_column_once_and_a_key_that_is_there(table: str) -> None:
    columns: tuple[Column, ...] = TABLES[table].columns
    names = [column.name for column in columns]
    assert len(set(names)) == len(names)
    assert set(TABLES[table].key) <= set(names)
    assert all(column.text for column in columns)
    assert all(not column.null for column in columns if column.name in TABLES[table].key)


def test_values_in_files() -> None:
    found = frame("agents", [_row("agents", label='a,"b"\n', alias=False)])
    (row,) = _read(csv_bytes("agents", found))
    assert (row["label"], row["alias"], row["released_on"]) == ('a,"b"\n', "false", "2026-01-02")
    (line,) = json_rows("runs", frame("runs", [_row("runs", score=1 / 3, outcome=None)]))
    told = json.loads(line)
    assert (told["score"], told["outcome"], told["created_at"]) == (1 / 3, None, "2026-01-02T03:04:05.678901Z")


def test_values_of_another_type_and_missing_columns_are_refused() -> None:
    with pytest.raises((TypeError, pl.exceptions.PolarsError)):
        frame("agents", [_row("agents", label=5)])
    with pytest.raises(KeyError):
        frame("agents", [{"agent_id": "x"}])


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12))
def test_no_cell_is_a_formula_and_each_can_be_had_again(text: str) -> None:
    (row,) = _read(csv_bytes("tasks", frame("tasks", [_row("tasks", name=text)])))
    assert not row["name"].startswith(("=", "+", "-", "@", "\t", "\r"))
    back = row["name"][1:] if GUARDED.match(row["name"]) else row["name"]
    assert back == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_had_again_exactly(value: float) -> None:
    (row,) = _read(csv_bytes("tasks", frame("tasks", [_row("tasks", price_usd=value)])))
    assert float(row["price_usd"]) == value

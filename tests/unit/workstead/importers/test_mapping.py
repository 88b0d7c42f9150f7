"""Mapping files and tables: what a source calls our fields, and rows of which one is broken."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstead.importers.mapping import FieldMap, Rule, decimal_of, find, read_mapping
from workstead.importers.tables import read_rows
from workstead.importers.untrusted import Broken, parse_elements
from workstead.task_dir import InvalidInput

KNOWN = ("id", "price", "kind", "tags", "text")


def mapping(tmp_path: Path, value: Any, name: str = "map.json") -> FieldMap:
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read_mapping(path, KNOWN, ["id"])


def test_a_mapping(tmp_path: Path) -> None:
    found = mapping(tmp_path, {"rows": "/data", "fields": {
        "id": "posting", "price": ["/budget/amount", "max"], "kind": {"from": "type", "map": {"F": "fixed", "1": "hourly"}},
        "tags": {"from": "/skills/0", "split": ";"}, "text": {"value": "opening"},
    }})  # fmt: skip
    values, troubles = found.apply(
        {"posting": 7, "budget": {"amount": None}, "max": Decimal("12.50"), "type": 1, "skills": ["a; b ;;c"]}, "row 3"
    )
    assert found.rows == "/data"
    assert values == {"id": 7, "price": Decimal("12.50"), "kind": "hourly", "tags": ["a", "b", "c"], "text": "opening"}
    assert not troubles


def test_the_same_mapping_as_toml(tmp_path: Path) -> None:
    text = 'fields.id = "/a~1b"\nfields.price = {from = "p", default = 3}\nfields.text = {value = 2026-01-05}\n'
    values, troubles = mapping(tmp_path, text, "map.toml").apply({"a/b": "x", "p": " "}, "row 1")
    assert (values, troubles) == ({"id": "x", "price": 3, "text": "2026-01-05"}, [])


def test_trouble_names_row_and_field(tmp_path: Path) -> None:
    found = mapping(tmp_path, {"fields": {"id": "n", "kind": {"from": ["a", "/b"], "map": {}}}})
    values, [trouble] = found.apply({"n": "1", "a": "odd"}, "row 12")
    assert values == {"id": "1", "kind": None}
    assert (trouble.where, trouble.detail) == ("row 12, field kind (a, /b)", "'odd' is no value that `map` knows")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"fields": {"id": "a", "colour": "b"}}, "unknown field 'colour'"),
        ({"fields": {"price": "a"}}, "field 'id' is missing"),
        ({"fields": {"id": {"from": "a", "value": 1}}}, "either `from` or `value`"),
        ({"fields": {"id": {}}}, "either `from` or `value`"),
        ({"fields": {"id": 3}}, "/fields/id"),
        ({"fields": {"id": {"from": "a", "speed": 1}}}, "speed"),
        ({"rows": "data", "fields": {"id": "a"}}, "/rows"),
        ({"fields": {"id": {"value": "\0"}}}, "NUL"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "/"),
    ],
)
def test_bad_mappings(tmp_path: Path, value: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        mapping(tmp_path, value)


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)),
    st.text(),
    st.text(),
)
def test_any_row_and_any_pointer(value: Any, source: str, split: str) -> None:
    find(value, source)
    if source:
        rule = Rule.model_validate({"from": source, "split": split[:16] or None, "map": {"a": "b"}})
        FieldMap({"f": rule}).apply({"f": value}, "row 1")


@pytest.mark.parametrize("value", ["", "x", "nan", "Infinity", True, None, [], "1" * 40, "1e99999", 10**40])
def test_no_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match="finite number"):
        decimal_of(value)


def test_numbers() -> None:
    assert [decimal_of(v) for v in (" 12.50 ", 3, Decimal("0.1"), "1e3")] == [
        Decimal("12.5"),
        3,
        Decimal("0.1"),
        1000,
    ]


def rows(path: Path, data: bytes, pointer: str = "") -> list[tuple[int, Any]]:
    path.write_bytes(data)
    return [(row.number, row.values if row.values is not None else row.trouble) for row in read_rows(path, pointer)]


def test_csv_loses_no_row_but_the_broken_one(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbfid,text\r\n1,"a\r\nb, c"\r\n2,\xff\r\n\r\n3,a,b\r\n4,"x" y\r\n5,last'
    assert rows(tmp_path / "t.csv", data) == [
        (1, {"id": "1", "text": "a\r\nb, c"}),
        (2, "is not UTF-8"),
        (3, "has 3 cells; the header has 2"),
        (4, "is not CSV: ',' expected after '\"'"),
        (5, {"id": "5", "text": "last"}),
    ]
    assert rows(tmp_path / "t.tsv", b"a\tb\n1\t2,3\n") == [(1, {"a": "1", "b": "2,3"})]


def test_jsonl_loses_no_row_but_the_broken_one(tmp_path: Path) -> None:
    found = rows(tmp_path / "t.jsonl", b'{"a": 1}\n\n{"a":\n[1]\n\xff\n{"a": NaN}')
    assert [found[0], found[2], found[4]] == [(1, {"a": 1}), (3, "is no object"), (5, {"a": None})]
    assert found[1][1].startswith("is not JSON")
    assert found[3][1].startswith("is not JSON")


def test_a_long_line_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workstead.importers.tables.MAX_ROW_BYTES", 20)
    found = rows(tmp_path / "t.jsonl", b'{"a": "' + b"x" * 100 + b'"}\n{"a": 2}\n')
    assert found == [(1, "is longer than 20 bytes"), (2, {"a": 2})]


def test_json_loses_no_element_but_the_broken_one(tmp_path: Path) -> None:
    assert rows(tmp_path / "t.json", b'{"d": [{"a": 1}, 2]}', "/d") == [(1, {"a": 1}), (2, "is no object")]
    deep = b"[" * 100_000 + b"]" * 100_000
    found = rows(
        tmp_path / "t.json", b' [ {"a": 1} , {"a": [x, "]"]}, {"a": 2} 3, ' + deep + b', {"a": "\xff"}, {"a": "tw'
    )
    assert [found[0], found[4]] == [(1, {"a": 1}), (5, {"a": "\udcff"})]
    assert [n for n, said in found if isinstance(said, str) and said.startswith("is not JSON")] == [2, 3, 4, 6]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("t.txt", b"a", "one of these kinds"),
        ("t.csv", b"", "1 to 4096 columns"),
        ("t.csv", b"a,a\n1,2\n", "two columns have the same name"),
        ("t.csv", "id,text\n1,ä\n".encode("utf-16"), "in UTF-8"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.json", b"{}", "has no list at its top"),
        ("t.json", b"[{", "is not JSON"),
        ("t.json", b"[]", "has no rows"),
        ("t.jsonl", b"\n", "has no rows"),
    ],
)
def test_what_has_no_rows(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        rows(tmp_path / name, data)


def test_a_sparse_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(InvalidInput, match="is longer than"):
        read_rows(path)


@given(st.lists(st.dictionaries(st.text(), st.integers(0, 10**9) | st.text() | st.none())), st.integers(0, 200))
def test_any_cut(value: list[Any], cut: int) -> None:
    data = json.dumps(value).encode()
    found = parse_elements(data[:cut])
    whole = [element for element in found if not isinstance(element, Broken)]
    assert whole == value[: len(whole)]
    assert len(found) - len(whole) <= 1
    if cut >= len(data) and value:
        assert found == value


@given(st.binary())
def test_any_bytes_as_an_array(data: bytes) -> None:
    parse_elements(b"[" + data)

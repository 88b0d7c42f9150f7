"""Lines of a ``jsonl`` scaffold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.json_objects import parse_object
from service.lifecycle.json_lines import MAX_LINE_BYTES, JsonLine, LineSplitter


@pytest.mark.parametrize(
    "line",
    [
        b"", b"text", b"[1]", b'{"a":', b'{"a": NaN}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' * 40 + b"1" + b"}" * 40, b'{"a":' * 100_000, b"{\xff}",
    ],
)  # fmt: skip
def test_what_is_no_storable_object_stays_raw(line: bytes) -> None:
    assert parse_object(line) is None


def test_an_object_is_taken_as_it_stands() -> None:
    assert parse_object(b'  {"type": "message", "n": [1, {"x": null}]} \r') == {
        "type": "message",
        "n": [1, {"x": None}],
    }


@given(st.lists(st.one_of(st.just(b"noise"), st.integers().map(lambda n: json.dumps({"n": n}).encode())), max_size=12),
       st.integers(1, 9))  # fmt: skip
def test_lines_do_not_depend_on_how_the_stream_was_cut(lines: list[bytes], step: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    at_once = LineSplitter().feed(data, 0)
    splitter, cut = LineSplitter(), list[JsonLine]()
    for at in range(0, len(data), step):
        cut += splitter.feed(data[at : at + step], at)
    assert cut == at_once
    assert all(json.loads(data[line.offset : line.offset + line.size]) == line.value for line in at_once)


@given(st.lists(st.sampled_from([b'{"n":1}', b"x", b""]), max_size=8), st.integers(0, 100))
def test_a_takeover_continues_inside_a_line(lines: list[bytes], where: int) -> None:
    data = b"".join(line + b"\n" for line in lines) + b'{"last":2}\n'
    where = min(where, len(data))
    before = LineSplitter()
    first = before.feed(data[:where], 0)
    resumed = LineSplitter.resumed(data[:where], from_start=True)
    assert first + resumed.feed(data[where:], where) == LineSplitter().feed(data, 0)


def test_a_longer_line_is_skipped_in_bounded_memory() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":"', 0) == []
    at = 6
    for _ in range(50):
        assert splitter.feed(b"x" * 65536, at) == []
        at += 65536
        assert len(splitter.carry) <= MAX_LINE_BYTES
    assert [line.value for line in splitter.feed(b'"}\n{"b":1}\n', at)] == [{"b": 1}]


def test_a_takeover_inside_a_longer_line_goes_on_skipping() -> None:
    resumed = LineSplitter.resumed(b"x" * (MAX_LINE_BYTES + 1), from_start=False)
    assert [line.value for line in resumed.feed(b'{"a":1}\n{"b":1}\n', 0)] == [{"b": 1}]

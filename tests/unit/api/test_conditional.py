"""Range, If-Range, If-None-Match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.conditional import ByteRange, RangeNotSatisfiable, byte_range, none_match


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-", ByteRange(2, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-30", ByteRange(0, 10)),
        ("bytes=5-500", ByteRange(5, 10)),
        ("bytes=5-4", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=a-b", None),
        ("bytes=0-" + "9" * 400, None),
    ],
)
def test_ranges_of_ten_bytes(header: str | None, expected: ByteRange | None) -> None:
    assert byte_range(header, None, '"t"', 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_not_satisfiable(header: str) -> None:
    with pytest.raises(RangeNotSatisfiable) as caught:
        byte_range(header, None, '"t"', 10)
    assert caught.value.fields["headers"] == {"Content-Range": "bytes */10"}


def test_if_range_of_another_version_means_the_whole() -> None:
    assert byte_range("bytes=0-1", '"old"', '"t"', 10) is None
    assert byte_range("bytes=0-1", '"t"', '"t"', 10) == ByteRange(0, 2)
    assert byte_range("bytes=0-1", 'W/"t"', '"t"', 10) is None


@given(st.text(max_size=40), st.integers(0, 50))
def test_any_header_gives_a_part_of_the_file(header: str, size: int) -> None:
    try:
        found = byte_range(header, None, "", size)
    except RangeNotSatisfiable:
        return
    assert found is None or 0 <= found.start < found.end <= size


def test_none_match() -> None:
    assert none_match('"1", W/"2"', '"2"')
    assert none_match("*", '"2"')
    assert not none_match('"20"', '"2"')
    assert not none_match(None, '"2"')

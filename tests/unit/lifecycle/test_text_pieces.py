"""Cutting output into event texts (faults 91, 92)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.limits import OUTPUT_EVENT_BYTES
from service.lifecycle.text_pieces import pieces, whole_length


@pytest.mark.parametrize("char", ["a", "é", "€", "𝄞"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_unfinished_code_point_is_left_out(char: str, cut: int) -> None:
    data = b"x" + char.encode()[:cut]
    whole = char.encode() if len(char.encode()) <= cut else b""
    assert whole_length(data) == 1 + len(whole)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x80\x80\x80", b"\xff", b"a\xff\xfe"])
def test_bytes_that_begin_no_code_point_are_not_held_back(data: bytes) -> None:
    assert whole_length(data) == len(data)


@given(st.binary(max_size=64))
def test_at_most_three_bytes_are_held_back(data: bytes) -> None:
    assert 0 <= len(data) - whole_length(data) <= 3


@pytest.mark.fault(91)
@given(st.text(min_size=1, max_size=40), st.integers(0, 3))
def test_pieces_join_to_the_whole_and_cut_no_code_point(text: str, shift: int) -> None:
    data = b"x" * shift + text.encode(errors="replace") * 2000
    cut = list(pieces(data, 7))
    assert b"".join(piece for _, piece in cut) == data
    assert [offset for offset, _ in cut] == [7 + sum(len(p) for _, p in cut[:i]) for i in range(len(cut))]
    assert all(len(piece) <= OUTPUT_EVENT_BYTES for _, piece in cut)
    assert "".join(piece.decode() for _, piece in cut) == data.decode()

"""Cursors: what comes back is what went out, or Invalid."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.cursors import decode, encode
from service.domain.errors import Invalid

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)


@given(TEXT, TEXT, TEXT)
def test_round_trip(key: str, row_id: str, mark: str) -> None:
    assert decode(encode((key, row_id), mark), mark) == (key, row_id)


@given(st.text(max_size=200))
def test_anything_else_is_invalid(text: str) -> None:
    with pytest.raises(Invalid):
        decode(text, "mark")


def test_a_cursor_of_another_list_is_invalid() -> None:
    with pytest.raises(Invalid):
        decode(encode(("a", "b"), "one"), "two")


def test_nul_and_size_are_refused() -> None:
    nul = base64.urlsafe_b64encode(json.dumps(["a\x00", "b", "m"]).encode()).decode().rstrip("=")
    for text in (nul, "A" * 5000, base64.urlsafe_b64encode(b"[" * 1500).decode()):
        with pytest.raises(Invalid):
            decode(text, "m")

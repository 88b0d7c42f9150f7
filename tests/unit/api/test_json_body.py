"""Bodies that may not be parsed, and those that may."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.json_body import MAX_DEPTH, parse
from service.api.problems import BodyRefused

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_what_json_can_say_comes_through(value: object, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.fault(96)
def test_depth_is_bounded_without_recursion() -> None:
    for body in (b"[" * 100_000, b'{"a":' * 100_000, b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)):
        with pytest.raises(BodyRefused) as caught:
            parse(body)
        assert caught.value.type == "json_too_deep"
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


def test_brackets_in_strings_are_no_depth() -> None:
    text = "[" * 1000 + '"' + "\\" + "{" * 1000
    assert parse(json.dumps([text]).encode()) == [text]


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (b"NaN", "json_not_finite"),
        (b'{"a": [Infinity]}', "json_not_finite"),
        (b"[-Infinity]", "json_not_finite"),
        (b"[1e999]", "json_not_finite"),
        (b"[" + b"9" * 5000 + b"]", "json_number_too_large"),
        (b'{"a": 1, "a": 2}', "json_duplicate_key"),
        (b'"a\\u0000b"', "json_bad_text"),
        (b'{"\\ud800": 1}', "json_bad_text"),
        (b'"\xff\xfe"', "json_not_utf8"),
    ],
)
def test_refused(body: bytes, type_: str) -> None:
    with pytest.raises(BodyRefused) as caught:
        parse(body)
    assert (caught.value.status_code, caught.value.type) == (422, type_)


def test_escaped_backslash_before_u0000_is_plain_text() -> None:
    assert parse(rb'"\\u0000"') == r"\u0000"
    assert parse(b'"\\ud83d\\ude00"') == "\U0001f600"

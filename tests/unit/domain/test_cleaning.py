"""What PostgreSQL refuses is replaced and flagged; what it takes is left alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.cleaning import MAX_DEPTH, clean_json, clean_str, clean_text, encode_payload, is_clean

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=300))
def test_any_bytes_become_storable_text(data: bytes) -> None:
    text, lossy = clean_text(data)
    assert "\0" not in text
    assert lossy == (text.encode() != data)


@given(st.dictionaries(st.text(st.characters()), JSON, max_size=5))
def test_any_payload_becomes_storable_json(payload: dict[str, Any]) -> None:
    encoded = encode_payload(payload)
    value = json.loads(encoded, parse_constant=pytest.fail)
    assert b"\\u0000" not in encoded.replace(b"\\\\", b"")  # a backslash of the text's own is written as two
    assert ("lossy" in value) or value == payload
    assert is_clean(value)


@pytest.mark.parametrize(("bad", "good"), [("a\0", "a\ufffd"), ("\ud800x", "\ufffdx"), ("\U0001f600", "\U0001f600")])
def test_strings(bad: str, good: str) -> None:
    assert clean_str(bad) == (good, bad != good)


def test_depth_is_bounded() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = {"a": deep}
    assert json.dumps(clean_json(deep)).count("{") == MAX_DEPTH
    level: Any = 1
    for _ in range(MAX_DEPTH):
        level = [level]
    assert clean_json(level) == level


def test_python_objects_do_not_break_an_append() -> None:
    assert json.loads(encode_payload({"x": {1}, "t": (1, 2)})) == {"x": "{1}", "t": [1, 2]}

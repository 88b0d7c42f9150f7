"""Names that are any bytes, as text and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.sandboxes.docker.readable import raw_path, readable, shortened


@pytest.mark.fault(17)
@given(st.binary(min_size=1, max_size=300))
def test_readable_is_reversible_and_plain_text(raw: bytes) -> None:
    text = readable(raw)
    assert raw_path(text) == raw
    text.encode()  # no lone surrogate


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=40))
def test_different_bytes_have_different_names(a: bytes, b: bytes) -> None:
    assert (readable(a) == readable(b)) == (a == b)


def test_ordinary_names_stay_as_they_are() -> None:
    for name in ("grüße.txt", "a b", "日本", "-rf", "a\nb", "e\u0301"):
        assert readable(name.encode()) == name
    assert readable(b"100%") == "100%25"
    assert readable(b"\xff\xfe") == "%FF%FE"


def test_shortened_is_bounded_and_distinct() -> None:
    a, b = b"x" * 5000, b"x" * 5001
    assert len(shortened(a)) < 2000
    assert shortened(a) != shortened(b)

"""The body of a batch of blobs, well-formed and not."""

import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.blob_batch import MAX_BLOBS, unpacked
from service.domain.errors import Invalid

SHA = b"a" * 64


def packed(data: bytes) -> bytes:
    return f"{hashlib.sha256(data).hexdigest()} {len(data)}\n".encode() + data


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_what_was_packed_comes_out(contents: list[bytes]) -> None:
    found = unpacked(b"".join(map(packed, contents)))
    assert found == {hashlib.sha256(data).hexdigest(): data for data in contents}


@given(st.binary(max_size=300))
def test_any_body_is_blobs_or_refused(body: bytes) -> None:
    with suppress(Invalid):
        found = unpacked(body)
        assert sum(len(data) + len(f"{sha} {len(data)}\n") for sha, data in found.items()) <= len(body)


@pytest.mark.parametrize(
    "body",
    [
        SHA, SHA + b" 1\n", SHA + b" 2\nx", SHA + b" 01\nx", SHA + b" -1\n", SHA + b" +1\nx", SHA + b" 1\r\nx",
        SHA + b"  1\nx", SHA.upper() + b" 1\nx", b"a" * 63 + b" 1\nx", SHA + b" 1\nxy", SHA + b" 99999999999\n",
        b"".join(b"%064x 0\n" % n for n in range(MAX_BLOBS + 1)),
    ],
)  # fmt: skip
def test_malformed(body: bytes) -> None:
    with pytest.raises(Invalid):
        unpacked(body)

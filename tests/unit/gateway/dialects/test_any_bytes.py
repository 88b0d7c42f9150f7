"""Meters read what passes however it is cut, encoded, mislabelled or broken; never an exception, never much memory."""

import gzip
import json
import tracemalloc
import zlib
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from service.gateway.dialects.meters import READ_LIMIT
from service.gateway.dialects.sse import SseSplitter
from tests.unit.gateway.dialects.answers import (
    ANTHROPIC_EVENTS,
    BODIES,
    CHAT_CHUNKS,
    STREAMS,
    Sample,
    meter_of,
    read,
    sse,
)

_SAMPLES = [*STREAMS.values(), *BODIES.values()]
_PATHS = sorted({sample.path for sample in _SAMPLES})


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@given(
    st.sampled_from(_SAMPLES), st.lists(st.integers(0, 1 << 16), max_size=40), st.sampled_from([b"\n", b"\r\n", b"\r"])
)
@settings(max_examples=150, deadline=None)
def test_any_cut_gives_the_same_answer(sample: Sample, cuts: list[int], newline: bytes) -> None:
    data = sample.body.replace(b"\n", newline)
    meter = meter_of(sample.path)
    for piece in _pieces(data, cuts):
        meter.feed(piece)
    assert meter.answer() == read(sample.path, sample.body)


@pytest.mark.parametrize("sample", _SAMPLES)
def test_byte_by_byte(sample: Sample) -> None:
    meter = meter_of(sample.path)
    for i in range(len(sample.body)):
        meter.feed(sample.body[i : i + 1])
    assert meter.answer().usage == sample.usage


@given(
    st.sampled_from(_PATHS), st.lists(st.binary(max_size=200), max_size=8), st.sampled_from(["", "gzip", "zstd", "br"])
)
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_survived(path: str, pieces: list[bytes], encoding: str) -> None:
    meter = meter_of(path, encoding)
    for piece in pieces:
        meter.feed(piece)
        meter.first_token_seen()
    assert meter.answer() is meter.answer()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "usage", "message", "error", "candidates", "choices", "delta", "content", "response",
                         "output", "item", "usageMetadata", "input_tokens", "parts", "content_block", "iterations"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.sampled_from(_PATHS), st.lists(_JSON, max_size=5))
@settings(max_examples=300, deadline=None)
def test_any_shape_is_survived(path: str, values: list[object]) -> None:
    read(path, b"".join(b"data: " + json.dumps(v).encode() + b"\n\n" for v in values))
    read(path, json.dumps(values).encode())
    for value in values:
        read(path, json.dumps(value).encode())


@pytest.mark.parametrize("sample", _SAMPLES)
def test_encodings_are_read(sample: Sample) -> None:
    for encoding, data in (
        ("gzip", gzip.compress(sample.body)),
        ("deflate", zlib.compress(sample.body)),
        ("zstd", zstandard.compress(sample.body)),
    ):
        meter = meter_of(sample.path, encoding)
        for i in range(0, len(data), 7):
            meter.feed(data[i : i + 7])
        assert meter.answer().usage == sample.usage, encoding
    assert read(sample.path, sample.body, "br").usage is None


def test_comments_fields_and_several_data_lines_are_as_the_standard_says() -> None:
    split = SseSplitter(1000)
    data = (
        b": hello\nid: 4\nretry: 10\nevent: a\ndata: {\ndata: }\n\n:\n\ndata\n\ndata:x\n\ndata:  y\n\nevent: lonely\n\n"
    )
    assert split.feed(b"\xef\xbb\xbf" + data) == [(b"a", b"{\n}"), (b"", b"x"), (b"", b" y")]
    assert split.end() == []


_TOKENS = [
    b"data:",
    b"data: ",
    b"event: ",
    b"event:",
    b":",
    b"id: 1",
    b"x",
    b" y",
    b"z" * 12,
    b"\n",
    b"\n\n",
    b"\r\n",
    b"\r",
    b"\xef\xbb\xbf",
]


@given(st.lists(st.sampled_from(_TOKENS), max_size=30), st.lists(st.integers(0, 120), max_size=6))
@settings(max_examples=400, deadline=None)
def test_where_it_is_cut_makes_no_difference(tokens: list[bytes], cuts: list[int]) -> None:
    data = b"".join(tokens)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces, bytewise = SseSplitter(1000), SseSplitter(1000)
    found = [event for start, end in pairwise(edges) for event in pieces.feed(data[start:end])]
    slowly = [event for i in range(len(data)) for event in bytewise.feed(data[i : i + 1])]
    assert found + pieces.end() == slowly + bytewise.end()


def test_a_long_event_is_skipped_and_the_next_ones_are_read() -> None:
    for long in (b"data: " + b"x" * 50, b"data: " + b"x" * 9 + b"\ndata: " + b"x" * 9, b"event: " + b"x" * 50):
        for cut in range(1, len(long)):
            split = SseSplitter(16)
            found = [*split.feed(long[:cut]), *split.feed(long[cut:] + b"\n\ndata: ok\n\n")]
            assert found == [(b"", b"ok")]


def test_deep_json_is_survived() -> None:
    for path in _PATHS:
        assert read(path, b"[" * 200_000).usage is None
        assert read(path, b"data: " + b'{"a":' * 200_000 + b"\n\n").usage is None


def test_a_hundred_megabytes_pass_in_little_memory() -> None:
    piece = b"x" * (1 << 20)
    for start in (b'{"a":"', b'data: {"a":"'):
        for path in ("/v1/messages", "/v1/chat/completions"):
            meter = meter_of(path)
            tracemalloc.start()
            meter.feed(start)
            for _ in range(100):
                meter.feed(piece)
            meter.feed(b'"}\n\n')
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert most < 3 * READ_LIMIT
            assert meter.answer().usage is None


def test_a_bomb_is_not_decoded_without_end() -> None:
    bombs = {"gzip": gzip.compress(bytes(200 << 20), 1), "zstd": zstandard.compress(bytes(200 << 20))}
    for encoding, data in bombs.items():
        meter = meter_of("/v1/messages", encoding)
        tracemalloc.start()
        meter.feed(data)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 64 << 20, encoding
        assert meter.answer().usage is None


def test_a_long_answer_after_a_skipped_event_is_still_counted() -> None:
    middle = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","x":"' + b"x" * (READ_LIMIT + 5) + b'"}\n\n'
    )
    usage = read("/v1/messages", sse(ANTHROPIC_EVENTS[:5]) + middle + sse(ANTHROPIC_EVENTS[5:])).usage
    assert usage == STREAMS["messages"].usage
    chunks = sse(CHAT_CHUNKS[:2], named=False) + b"data: " + b"x" * (READ_LIMIT + 5) + b"\n\n"
    assert read("/v1/chat/completions", chunks + sse(CHAT_CHUNKS[2:], named=False)).usage == STREAMS["chat"].usage

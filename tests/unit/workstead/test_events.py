"""The event stream: every event once, whatever breaks."""

from itertools import pairwise

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workstead.fake_api import Cut, Script, client, problem, sse, sync_client
from workstead.errors import Disconnected, NotFound, ProtocolError
from workstead.sse import MAX_MESSAGE_BYTES, SseParser


def stream(body: bytes | Cut) -> httpx.Response:
    headers = {"Content-Type": "text/event-stream"}
    if isinstance(body, Cut):
        return httpx.Response(200, headers=headers, stream=body)
    return httpx.Response(200, headers=headers, content=body)


@given(st.lists(st.integers(0, 400), max_size=8))
def test_parser_gives_the_same_messages_however_the_bytes_are_cut(cuts: list[int]) -> None:
    body = (
        b"retry: 1000\n\n: still here\n\n" + sse(1, 2) + "id: 3\r\ndata: é\r\ndata: ü\r\n\r\n".encode() + sse(end=True)
    )
    points = [0, *sorted(c % len(body) for c in cuts), len(body)]
    parser = SseParser()
    found = [m for a, b in pairwise(points) for m in parser.feed(body[a:b])]
    assert [(m.id, m.event) for m in found] == [("1", "message"), ("2", "message"), ("3", "message"), ("3", "end")]
    assert found[2].data == "é\nü"
    assert parser.retry_s == 1.0


def test_parser_is_bounded() -> None:
    parser = SseParser()
    for _ in range(MAX_MESSAGE_BYTES // 65_536):
        assert list(parser.feed(b"x" * 65_536)) == []
    with pytest.raises(ProtocolError):
        list(parser.feed(b"x"))


async def test_resumes_after_cuts_and_gives_each_event_once() -> None:
    script = Script(
        stream(Cut([sse(1, 2), b"id: 3\ndata: {"])),
        httpx.ConnectError("away"),
        problem(503, "database_unavailable"),
        stream(sse(2, 3)),  # closed without an end, and it repeats one
        stream(sse(4, end=True)),
    )
    async with client(script) as api:
        assert [e.seq async for e in api.runs.events("run_1")] == [1, 2, 3, 4]
    assert [r.headers["Last-Event-ID"] for r in script.requests] == ["0", "2", "2", "2", "3"]
    assert script.left == 0


def test_the_generated_client_resumes_too() -> None:
    script = Script(stream(Cut([sse(1)])), stream(sse(2, end=True)))
    with sync_client(script) as api:
        assert [e.seq for e in api.runs.events("run_1", after=0)] == [1, 2]


async def test_204_is_the_end() -> None:
    async with client(Script(httpx.Response(204))) as api:
        assert [e async for e in api.runs.events("run_1", after=9)] == []


async def test_gives_up_in_words_when_nothing_ever_comes() -> None:
    script = Script(*[httpx.ConnectError("away")] * 61)
    async with client(script) as api:
        with pytest.raises(Disconnected, match="61 connections"):
            _ = [e async for e in api.runs.events("run_1")]


async def test_a_problem_that_waiting_does_not_cure_is_raised() -> None:
    async with client(Script(problem(404, "not_found"))) as api:
        with pytest.raises(NotFound):
            _ = [e async for e in api.runs.events("run_1")]


async def test_an_event_that_is_not_one_is_a_protocol_error() -> None:
    async with client(Script(stream(b'data: {"seq": "x"}\n\n'))) as api:
        with pytest.raises(ProtocolError):
            _ = [e async for e in api.runs.events("run_1")]

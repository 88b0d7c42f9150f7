"""From frames to events: nothing lost, nothing doubled, bounded (faults 90, 91, 92)."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.cleaning import clean_text
from service.domain.events import EventType, NewEvent
from service.lifecycle.raw_log import Spool
from service.lifecycle.recorder import Budget, Recorder
from service.sandboxes.contract import Frame

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def recorder(parser: Literal["text", "jsonl"] = "text", budget: Budget | None = None) -> Recorder:
    return Recorder(clean_text, parser, budget or Budget())


def output(events: list[NewEvent]) -> str:
    return "".join(e.payload["text"] for e in events if e.type == EventType.OUTPUT)


def test_two_streams_keep_their_own_offsets() -> None:
    r = recorder()
    r.feed(Frame("stdout", 0, b"out"))
    r.feed(Frame("stderr", 0, b"error"))
    batch = r.batch(NOW)
    assert batch.ends == {"stdout": 3, "stderr": 5}
    r.commit(batch)
    assert r.stored() == {"stdout": 3, "stderr": 5}
    assert r.pending_bytes == 0


def test_repeated_frames_are_dropped_and_gaps_refused() -> None:
    r = recorder()
    r.feed(Frame("stdout", 0, b"abcd"))
    r.feed(Frame("stdout", 2, b"cdef"))
    r.feed(Frame("stdout", 0, b"ab"))
    assert output(r.batch(NOW).events) == "abcdef"
    with pytest.raises(ValueError, match="does not follow"):
        r.feed(Frame("stdout", 7, b"x"))
    with pytest.raises(ValueError, match="does not follow"):
        r.feed(Frame("fd3", 0, b"x"))


@pytest.mark.fault(92)
def test_invalid_bytes_are_replaced_and_marked() -> None:
    r = recorder()
    r.feed(Frame("stdout", 0, b"a\xff\x00\xed\xa0\x80b"))
    (event,) = r.batch(NOW).events
    assert event.payload["lossy"] is True
    assert "\0" not in event.payload["text"]
    event.payload["text"].encode()


def test_an_unfinished_code_point_is_stored_but_waits_for_its_end_or_the_streams() -> None:
    r = recorder()
    r.feed(Frame("stdout", 0, "a€".encode()[:3]))
    batch = r.batch(NOW)
    assert (batch.ends, output(batch.events)) == ({"stdout": 3}, "a")
    r.commit(batch)
    assert r.batch(NOW).ends == {}
    (event,) = r.batch(NOW, final=True).events
    assert (event.source_offset, event.payload["lossy"]) == (1, True)
    r.feed(Frame("stdout", 3, "€b".encode()[2:]))
    (event,) = r.batch(NOW).events
    assert (event.source_offset, event.payload["text"]) == (1, "€b")


@settings(max_examples=200)
@given(st.text(alphabet='aé€𝄞\n{}":1', max_size=60), st.lists(st.integers(1, 7), min_size=1), st.integers(0, 30))
def test_a_takeover_anywhere_gives_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, text: str, steps: list[int], die_after: int
) -> None:
    data = text.encode()
    spool = Spool(tmp_path_factory.mktemp("spool"))
    events, r, at, step = list[NewEvent](), recorder("jsonl"), 0, 0
    while at < len(data):
        size = steps[step % len(steps)]
        r.feed(Frame("stdout", at, data[at : at + size]))
        at, step = at + size, step + 1
        batch = r.batch(NOW)
        for stream, offset, raw in batch.raw:
            spool.write(stream, offset, raw)
        if step == die_after:  # after the spool, before the commit: everything since the last commit comes again
            stored = r.stored()
            r = recorder("jsonl")
            r.resume(stored, spool)
            at = stored["stdout"]
            continue
        events += batch.events
        r.commit(batch)
    events += r.batch(NOW, final=True).events
    keys = [(e.source, e.source_offset) for e in events]
    assert len(set(keys)) == len(keys)
    assert output(events) == data.decode()
    whole = recorder("jsonl")
    whole.feed(Frame("stdout", 0, data))
    expected = [e for e in whole.batch(NOW, final=True).events if e.source == "stdout.json"]
    assert [(e.source_offset, e.payload) for e in events if e.source == "stdout.json"] == [
        (e.source_offset, e.payload) for e in expected
    ]


@pytest.mark.fault(90)
def test_past_the_budget_output_is_counted_marked_once_and_not_decoded() -> None:
    decoded: list[int] = []

    def decode(data: bytes) -> tuple[str, bool]:
        decoded.append(len(data))
        return data.decode(), False

    r = Recorder(decode, "text", Budget(text_bytes=40_000))
    total, events = 0, list[NewEvent]()
    for _ in range(200):
        r.feed(Frame("stdout", total, b"y\n" * 8192))
        total += 16384
        batch = r.batch(NOW)
        events += batch.events
        r.commit(batch)
        assert r.pending_bytes == 0
    assert r.stored()["stdout"] == total
    marks = [e for e in events if e.type == EventType.OUTPUT_TRUNCATED]
    assert [m.payload for m in marks] == [{"stream": "stdout", "kept_bytes": 32768}]
    assert sum(decoded) == 32768


def test_the_events_of_a_run_are_bounded_too() -> None:
    r = recorder("jsonl", Budget(events=3))
    r.feed(Frame("stdout", 0, b'{"a":1}\n' * 10))
    batch = r.batch(NOW)
    assert [e.type for e in batch.events] == [
        EventType.OUTPUT, EventType.AGENT_MESSAGE, EventType.AGENT_MESSAGE, EventType.OUTPUT_TRUNCATED,
    ]  # fmt: skip
    assert batch.truncated


def test_messages_and_tool_calls_are_counted() -> None:
    r = recorder("jsonl")
    r.feed(Frame("stdout", 0, b'{"type":"message"}\n{"type":"tool_call","name":"bash"}\nplain\n{"x":1}\n'))
    batch = r.batch(NOW)
    assert (batch.turns, batch.tool_calls, batch.doing) == (1, 1, "bash")
    offsets = [e.source_offset for e in batch.events if e.source == "stdout.json"]
    assert all(a < b for a, b in pairwise(offsets))


def test_a_spool_write_may_be_repeated(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s")
    spool.write("stdout", 0, b"abc")
    spool.write("stdout", 1, b"bcd")
    assert spool.tail("stdout", 4) == (b"abcd", True)
    assert spool.tail("stderr", 0) == (b"", True)

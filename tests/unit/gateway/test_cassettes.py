"""What two requests have in common when nothing changed, and where they differ when something did."""

import copy
from typing import Any

import pytest

from service.domain.models import Dialect
from service.gateway.cassettes.difference import Difference, first_difference
from service.gateway.cassettes.normal import TEXTS, Normaliser, body_hash, key_of, normal_text
from service.gateway.recording import Recording

_SAME = [
    ("at 2026-11-30 08:32:36", "at 2027-01-02T23:59:59.123Z"),
    ("Today's date: 2026-11-30", "Today's date: 2026-12-01"),
    ("Monday, November 30, 2026", "Friday, May 1, 2026"),
    ("-rw-r--r-- 1 u u 12 Nov 30 08:31 a.csv", "-rw-r--r-- 1 u u 12 Dec  1 23:59 a.csv"),
    ("Mon Nov 30 08:32:36 UTC 2026", "Tue Dec  1 00:00:00 UTC 2026"),
    ("Wall time: 0.0512 seconds", "Wall time: 12.1 seconds"),
    ("took 35ms", "took 7 ms"),
    ("PID 4711 is done", "PID 12 is done"),
    ('{"session_id": 1201}', '{"session_id": 7}'),
    ("6f1c0e0a-1111-4222-8333-123456789abc", "00000000-0000-0000-0000-000000000000"),
    ("stamp 1764491556.12", "stamp 1800000000"),
    ("<object at 0x7f0a1b2c3d4e>", "<object at 0x7fffffffffff>"),
    ("run_01K9ABCDEFGHJKMNPQRSTV", "run_01K9ZZZZZZZZZZZZZZZZZZ"),
    ("cc_version=2.1; cch=a1b2c;", "cc_version=2.1; cch=00000;"),
    ("took 08:32:36.1", "took 10:00:00"),
    ("Chunk ID: abcdef\nWall", "Chunk ID: 94b5bd\nWall"),
    ("/tmp/cc-socks/9.sock", "/tmp/cc-socks/10.sock"),
]


@pytest.mark.parametrize(("one", "other"), _SAME)
def test_volatile_texts_are_alike(one: str, other: str) -> None:
    assert normal_text(one) == normal_text(other) != one
    assert normal_text(normal_text(one)) == normal_text(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("version 2.1.332", "version 2.1.333"),
        ("12.50 dollars", "12.51 dollars"),
        ("row 7 of 9", "row 8 of 9"),
        ("port 8080", "port 8081"),
        ("sha 3f786850e387550fdab836ed7e6dc881de23001b", "sha 89e6c98d92887913cadf06b2adb97f26cde4849b"),
    ],
)
def test_what_an_agent_works_with_is_told_apart(one: str, other: str) -> None:
    assert normal_text(one) != normal_text(other)


def test_every_kind_of_volatile_text_is_tried() -> None:
    found = {kind for one, _ in _SAME for kind in TEXTS if f"<{kind}>" in normal_text(one)}
    assert found == set(TEXTS)


@pytest.mark.parametrize(
    ("dialect", "change"),
    [
        (Dialect.ANTHROPIC, {"metadata": {"user_id": "x"}}),
        (Dialect.OPENAI, {"prompt_cache_key": "x", "client_metadata": {"a": "b"}, "user": "u"}),
        (Dialect.GEMINI, {"labels": {"a": "b"}}),
    ],
)
def test_volatile_fields_are_left_out(dialect: Dialect, change: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    normal = Normaliser()
    assert normal.body(dialect, {**body, **change}) == normal.body(dialect, body) == body


def test_ids_that_gemini_clients_make_up_do_not_count() -> None:
    def body(id_: str) -> dict[str, Any]:
        call: dict[str, Any] = {"functionCall": {"id": id_, "name": "f", "args": {"id": "kept"}}}
        return {"contents": [{"parts": [call, {"functionResponse": {"id": id_, "name": "f"}}]}]}

    before = body("a-1")
    kept = copy.deepcopy(before)
    normal = Normaliser().body(Dialect.GEMINI, before)
    assert normal == Normaliser().body(Dialect.GEMINI, body("b-2"))
    assert normal["contents"][0]["parts"][0]["functionCall"]["args"] == {"id": "kept"}
    assert before == kept


def test_ids_of_input_items_do_not_count_but_those_of_calls_do() -> None:
    def body(id_: str, call: str) -> dict[str, Any]:
        return {"input": [{"id": id_, "type": "message"}, {"type": "function_call_output", "call_id": call}]}

    normal = Normaliser()
    assert normal.body(Dialect.OPENAI, body("msg_a", "c1")) == normal.body(Dialect.OPENAI, body("msg_b", "c1"))
    assert normal.body(Dialect.OPENAI, body("msg_a", "c1")) != normal.body(Dialect.OPENAI, body("msg_a", "c2"))


def test_a_key_is_of_method_place_model_and_body() -> None:
    one = key_of("POST", "anthropic:messages", "m", {"a": 1, "b": 2})
    assert one == key_of("POST", "anthropic:messages", "m", {"b": 2, "a": 1})
    others = [
        key_of("GET", "anthropic:messages", "m", {"a": 1, "b": 2}),
        key_of("POST", "openai:chat", "m", {"a": 1, "b": 2}),
        key_of("POST", "anthropic:messages", "n", {"a": 1, "b": 2}),
        key_of("POST", "anthropic:messages", "m", {"a": 1, "b": True}),
    ]
    assert len({one, *others}) == 5
    assert body_hash({"a": [1, 2]}) != body_hash({"a": [2, 1]})


@pytest.mark.parametrize(
    ("recorded", "asked", "expected"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, Difference("/a/1/b", '"x"', '"y"')),
        ({"a": [1]}, {"a": [1, 2]}, Difference("/a/1", "(absent)", "2")),
        ({"a/b~": 1}, {}, Difference("/a~1b~0", "1", "(absent)")),
        ({"a": 1}, {"a": True}, Difference("/a", "1", "True")),
        ({"a": {"k": 1}}, {"a": [1, 2]}, Difference("/a", "an object with k", "an array of 2")),
        ({"z": 1, "a": 1}, {"a": 2, "z": 2}, Difference("/z", "1", "2")),
        (None, None, None),
    ],
)
def test_the_first_difference_is_shown(recorded: Any, asked: Any, expected: Difference | None) -> None:
    assert first_difference(recorded, asked) == expected


def test_long_texts_are_shown_around_their_difference() -> None:
    found = first_difference({"t": "a" * 5000 + "X" + "b" * 5000}, {"t": "a" * 5000 + "Y" + "b" * 5000})
    assert found is not None
    assert "aX" in found.recorded
    assert "aY" in found.asked
    assert len(found.recorded) < 300


def test_a_recording_has_the_bytes_and_when_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("service.gateway.recording.time.monotonic", lambda: now[0])
    recording = Recording(limit=6, content_type="text/event-stream", began=10.0)
    for seconds, data in ((0.1, b"ab"), (0.101, b"c"), (0.5, b"de"), (0.9, b"fgh")):
        now[0] = 10.0 + seconds
        recording.take(data)
    assert recording.cassette() == {
        "v": 1, "content_type": "text/event-stream", "chunks": [[100, 3], [500, 2], [900, 3]],
    }  # fmt: skip
    assert (recording.data(), recording.size) == (b"abcdef", 8)


def test_a_long_recording_has_a_bounded_list_of_pieces() -> None:
    recording = Recording(limit=0, began=0.0)
    for i in range(5000):
        recording.began = -float(i)
        recording.take(b"x")
    assert len(recording.chunks) <= 2000
    assert sum(size for _, size in recording.chunks) == 5000

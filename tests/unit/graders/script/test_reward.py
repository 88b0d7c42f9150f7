"""What a verifier leaves is foreign text: numbers in their range, or no verdict."""

import json
from typing import Any

import pytest

from service.graders.script.reward import MAX_TESTS, Unusable, read_reward, read_tests
from service.graders.script.settings import ScriptSettings

ONE = ScriptSettings()


@pytest.mark.parametrize(("text", "score"), [(b"1", 1), (b" 0.25\n", 0.25), (b"0", 0), (b"1e-1", 0.1)])
def test_a_number(text: bytes, score: float) -> None:
    found = read_reward(text, None, ONE)
    assert found is not None
    assert found.score == score


@pytest.mark.parametrize("text", [b"", b"nan", b"inf", b"-0.1", b"1.01", b"1 1", b"passed", b"\xff", "\uff11".encode()])
def test_what_is_no_reward(text: bytes) -> None:
    with pytest.raises(Unusable):
        read_reward(text, None, ONE)


def test_json_goes_before_text_and_keeps_its_other_numbers() -> None:
    found = read_reward(b"0", b'{"reward": 0.5, "speed": 3}', ONE)
    assert found is not None
    assert (found.score, found.others) == (0.5, {"speed": 3.0})


def test_an_object_of_one_number_needs_no_name() -> None:
    found = read_reward(None, b'{"accuracy": 1}', ONE)
    assert found is not None
    assert found.score == 1


@pytest.mark.parametrize(
    "document",
    [
        b'{"a": 1, "b": 0}',
        b'{"reward": true}',
        b'{"reward": "1"}',
        b'{"reward": NaN}',
        b'{"reward": 1, "reward": 0}',
        b'{"reward": 2}',
        b'{"reward": 1, "more": null}',
        b"[1]",
        b"{}",
        b"",
    ],
)
def test_json_that_is_no_reward(document: bytes) -> None:
    with pytest.raises(Unusable):
        read_reward(b"1", document, ONE)


def test_nothing_left_is_nothing() -> None:
    assert read_reward(None, None, ONE) is None


def report(*tests: Any) -> bytes:
    return json.dumps({"results": {"tests": list(tests)}}).encode()


def test_single_tests_are_shown() -> None:
    rows = read_tests(
        report(
            {"name": "a", "status": "passed"},
            {"name": "b", "status": "failed", "message": "no\x00"},
            {"status": "skipped"},
        )
    )
    assert [(r["id"], r["passed"]) for r in rows] == [("a", True), ("b", False), ("test 3", None)]
    assert "\x00" not in rows[1]["reason"]
    assert all(r["max_score"] is None for r in rows), "the reward alone scores"


@pytest.mark.parametrize("document", [None, b"", b"{}", b'{"results": []}', b'{"results": {"tests": 3}}', b"x" * 100])
def test_a_report_that_cannot_be_read_is_none(document: bytes | None) -> None:
    assert read_tests(document) == []


def test_a_report_is_bounded() -> None:
    assert len(read_tests(report(*[{"name": "t", "status": "passed"}] * (MAX_TESTS + 5)))) == MAX_TESTS
    assert read_tests(report(7, {"name": "t" * 1000, "status": "passed"}))[0]["id"] == "t" * 300

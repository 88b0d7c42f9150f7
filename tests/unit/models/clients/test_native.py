"""What a provider says of its computer tool is bounded before it is kept."""

import pytest

from service.domain.models import Dialect
from service.models.clients.computers import responses
from service.models.clients.computers.native import MAX_CHECKS, native_vocabularies, safety_checks
from service.models.messages import ToolResult


def test_safety_checks_are_cut_and_none_is_overlooked() -> None:
    found = safety_checks([{"id": "i" * 999, "code": 7, "message": "m" * 99_999}, {}, *[{"id": "x"}] * 100])
    assert len(found) == MAX_CHECKS
    assert (len(found[0].id), found[0].code, len(found[0].message)) == (200, "7", 4000)
    assert found[1].id == ""


def test_chat_completions_has_no_computer() -> None:
    assert native_vocabularies(Dialect.OPENAI, chat=True) == ()
    assert native_vocabularies(Dialect.OPAQUE) == ()
    assert "openai.computer" in native_vocabularies(Dialect.OPENAI)


@pytest.mark.parametrize(
    ("item", "arguments"),
    [
        ({"action": {"type": "wait"}}, {"action": {"type": "wait"}}),
        ({"actions": [], "action": {"type": "wait"}}, {"action": {"type": "wait"}}),
        ({"actions": [{"type": "wait"}], "action": {"type": "move"}}, {"actions": [{"type": "wait"}]}),
        ({"actions": None, "action": None}, {}),
        ({"actions": "all", "pending_safety_checks": "none"}, {"actions": "all"}),
    ],
)
def test_a_call_has_one_form_of_actions(item: dict[str, object], arguments: dict[str, object]) -> None:
    call = responses.call({"call_id": "c1", **item}, "openai.computer")
    assert (call.id, call.name, call.arguments, call.checks) == ("c1", "computer", arguments, [])


def test_what_is_said_beside_a_picture_follows_the_answers() -> None:
    results = [
        ToolResult(id="c1", name="computer", text=" ", vocabulary="openai.computer"),
        ToolResult(id="c2", name="computer", text="out_of_bounds", is_error=True, vocabulary="openai.computer"),
    ]
    (message,) = responses.remarks(results)
    assert message["role"] == "user"
    assert [part["text"] for part in message["content"]] == ["Computer call c2 failed: out_of_bounds"]
    assert responses.remarks(results[:1]) == []

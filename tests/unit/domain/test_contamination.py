"""Marks of an answer key: what is one, and in which disguises of a wire it is still found."""

import json

from hypothesis import given
from hypothesis import strategies as st

from service.domain.contamination import (
    MOST_HITS,
    SHINGLE,
    Hit,
    Mark,
    MarkKind,
    hits_in,
    marks_of,
    plain,
    texts_of_json,
)

ANSWER = (
    "The reconciliation must show that invoice 4711 was booked twice in March, so that the balance is 12 480.55 euros; "
    "a memo of at most two pages names the three suppliers concerned, and recommends to block payment until May.\n"
)
CANARY = "workstead-canary 7c9e6679-7425-40de-944b-e07fc1f90ae7"


def marks(*, seen: str = "Reconcile the ledgers.") -> list[Mark]:
    return marks_of([CANARY], [("rubrics.json", ANSWER)], [seen])


def kinds(found: list[Hit]) -> list[str]:
    return [str(hit.kind) for hit in found]


def test_stretches_and_canaries_are_marks() -> None:
    made = marks()
    assert [m.kind for m in made] == [MarkKind.CANARY] + [MarkKind.SHINGLE] * 3
    assert all(len(m.text) == SHINGLE for m in made[1:])
    assert {m.source for m in made} == {"", "rubrics.json"}


def test_what_every_agent_is_given_is_none() -> None:
    assert kinds([Hit(m.kind, "", "", "") for m in marks(seen="Note:\n" + ANSWER.upper())]) == ["canary"]


def test_a_ruler_a_table_and_short_texts_are_none() -> None:
    lines = ["=" * 200, "0.00 " * 60, "| a | b |" * 30, "short"]
    assert marks_of(["x", ""], [("a", text) for text in lines], []) == []


def test_a_copy_is_found_whatever_the_wire_made_of_it() -> None:
    found = marks()
    inner = json.dumps({"content": ANSWER + CANARY})
    for body in (
        ANSWER + CANARY,
        ANSWER.replace(" ", "\n  ").upper() + CANARY,
        texts_of_json(inner),
        texts_of_json(json.dumps({"tool_result": inner})),
        texts_of_json(json.dumps([{"text": ANSWER}, {"text": CANARY}])),
    ):
        assert kinds(hits_in(found, "here", body)) == ["canary"] + ["shingle"] * 3
    assert hits_in(found, "here", "Reconcile the ledgers. Invoice 4711 was booked twice.") == []


def test_a_streamed_answer_is_put_together() -> None:
    pieces = [ANSWER[i : i + 7] for i in range(0, len(ANSWER), 7)]
    stream = (
        "".join(f"data: {json.dumps({'type': 'delta', 'delta': {'text': p}})}\n\n" for p in pieces) + "data: [DONE]\n\n"
    )
    assert kinds(hits_in(marks(), "model answer 1", texts_of_json(stream))) == ["shingle"] * 3


def test_hits_are_bounded() -> None:
    long = " ".join(
        f"criterion number {i} asks for figure {i * 7919} of region {i % 13} in year {1900 + i}" for i in range(3000)
    )
    found = marks_of([], [("key.txt", long)], [])
    assert len(hits_in(found, "here", long)) == MOST_HITS


def test_deep_or_broken_json_is_text() -> None:
    assert texts_of_json("[" * 100_000) == "[" * 100_000
    assert texts_of_json('{"a": ') == '{"a": '


@given(st.text())
def test_the_plain_form_is_its_own(text: str) -> None:
    assert plain(plain(text)) == plain(text) or "\\" in text

"""Annotations: what an answer may be, what people may write, how votes become one value."""

from typing import Any

import pytest

from service.domain.annotation_votes import as_text, settle, table
from service.domain.annotations import (
    AnnotationSetRequest,
    Labels,
    Number,
    ShortText,
    YesNo,
    brought_value,
    overlays_of,
    value_of,
)

ONE = Labels(kind="labels", labels={"a": "", "b": "", "c": ""})
SEVERAL = Labels(kind="labels", labels={"a": "", "b": "", "c": ""}, several=True)
SCALE = Number(kind="number", least=1, most=5)
SHARE = Number(kind="number", least=0, most=1, whole=False)
YES = YesNo(kind="boolean")
TEXT = ShortText(kind="text", most_chars=5)
Shape = Labels | Number | YesNo | ShortText


@pytest.mark.parametrize(
    ("shape", "given", "value"),
    [
        (ONE, "b", "b"), (SEVERAL, ["c", "a"], ["a", "c"]), (SCALE, 4, 4.0), (SHARE, 0.5, 0.5), (YES, True, "yes"),
        (YES, False, "no"), (TEXT, " a \n b ", "a b"),
    ],
)  # fmt: skip
def test_an_answer_is_a_facet(shape: Shape, given: Any, value: Any) -> None:
    assert value_of(shape, given) == value


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        (ONE, "d"), (ONE, ["a"]), (ONE, 1), (ONE, None), (SEVERAL, ["a", "d"]), (SEVERAL, "a"), (SEVERAL, ["a", "a"]),
        (SCALE, 0), (SCALE, 6), (SCALE, 2.5), (SCALE, True), (SCALE, "2"), (SCALE, float("nan")), (SHARE, 1.01),
        (YES, "yes"), (YES, 1), (TEXT, "six ch"), (TEXT, "  "), (TEXT, 5),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_none(shape: Shape, given: Any) -> None:
    with pytest.raises(ValueError, match=r"asked for|label"):
        value_of(shape, given)


def test_people_write_everything_as_text() -> None:
    assert brought_value(SEVERAL, "c; a;") == ["a", "c"]
    assert (brought_value(SCALE, " 3 "), brought_value(SHARE, "0.25")) == (3.0, 0.25)
    assert (brought_value(YES, "Yes"), brought_value(YES, "false"), brought_value(YES, True)) == ("yes", "no", "yes")
    assert brought_value(ONE, " b ") == "b"
    for shape, wrong in ((SCALE, "three"), (SCALE, "9"), (YES, "maybe"), (ONE, "a;b"), (SEVERAL, "a;d")):
        with pytest.raises(ValueError, match=r"asked for|label"):
            brought_value(shape, wrong)


@pytest.mark.parametrize(
    ("shape", "votes", "value", "agreeing", "tied"),
    [
        (ONE, ["a", "b", "a"], "a", 2, []), (ONE, ["a", "b"], None, 0, ["a", "b"]), (ONE, [], None, 0, []),
        (ONE, ["c", "b", "a"], None, 0, ["a", "b", "c"]), (YES, ["yes", "yes", "no"], "yes", 2, []),
        (SEVERAL, [["a", "b"], ["a"], ["a", "c"]], ["a"], 1, []), (SEVERAL, [["a"], ["b"]], None, 0, ["a", "b"]),
        (SEVERAL, [["a"], ["b"], ["c"]], [], 0, []), (SCALE, [1.0, 5.0, 4.0], 4.0, 1, []),
        (SCALE, [2.0, 3.0], None, 0, ["2", "3"]), (SCALE, [2.0, 4.0], 3.0, 0, []), (SHARE, [0.25, 0.5], 0.375, 0, []),
    ],
)  # fmt: skip
def test_votes_become_one_value_or_a_tie_that_is_named(
    shape: Shape, votes: Any, value: Any, agreeing: int, tied: list[str]
) -> None:
    found = settle(shape, votes, None)
    assert (found.value, found.votes, found.agreeing, found.tied) == (value, len(votes), agreeing, tied)
    assert not found.by_person


def test_a_persons_word_goes_before_all_votes() -> None:
    found = settle(ONE, ["a", "a", "b"], "b")
    assert (found.value, found.votes, found.agreeing, found.tied, found.by_person) == ("b", 3, 1, [], True)


def test_kappa_is_of_items_that_all_votes_were_answered_on() -> None:
    votes = {"t1": ["a", "a", "b"], "t2": ["b", "b", "b"], "t3": ["a", "a"]}
    assert table(votes, 3) == [[2, 1], [0, 3]]
    assert (as_text(["a", "b"]), as_text(2.0), as_text(0.25)) == ("a; b", "2", "0.25")


def test_facets_of_annotations_are_known_by_their_name() -> None:
    assert overlays_of(["kind@2", "category", "kind@2", "kind@0", "Kind@1", "kind@", "a@b", "tone@10"]) == [
        "kind@2", "tone@10",
    ]  # fmt: skip


WISH: dict[str, Any] = {
    "name": "kind", "benchmark": "pw", "question": "What is it?", "answer": {"kind": "labels", "labels": {"a": "", "b": ""}},
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"task_ids": ["task_1"]}, {"benchmark": None}, {"about": "text"}, {"about": "deliverable"},
        {"texts": {"t": "x"}}, {"run_ids": ["run_1"]}, {"about": "text", "benchmark": None},
        {"about": "text", "texts": {"t": "x"}}, {"answer": {"kind": "labels", "labels": {"a": ""}}},
        {"answer": {"kind": "labels", "labels": {"a;b": "", "b": ""}}}, {"answer": {"kind": "number", "least": 1, "most": 1}},
        {"answer": {"kind": "stars"}}, {"votes": 0}, {"votes": 10}, {"question": ""},
        {"annotators": [{"model": "m"}, {"model": "m"}]}, {"answer": {"kind": "text", "most_chars": 201}},
    ],
)  # fmt: skip
def test_a_set_names_its_items_once_and_its_answers_shape(changes: dict[str, Any]) -> None:
    assert AnnotationSetRequest.model_validate(WISH).kept().benchmark == "pw"
    with pytest.raises(ValueError, match="validation error"):
        AnnotationSetRequest.model_validate(WISH | changes)

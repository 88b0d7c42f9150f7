import json
from typing import Any

import pytest

from service.graders.contract import InvalidVote
from service.graders.judging import answers, canary

NONCE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2], "b": ", ]"}',
        '  {"a": [1, 2], "b": ", ]"}\n',
        '\ufeff{"a": [1, 2], "b": ", ]"}',
        '```json\n{"a": [1, 2], "b": ", ]"}\n```',
        '```\n{"a": [1, 2], "b": ", ]"}\n```\n',
        '{"a": [1, 2,], "b": ", ]",}',
        '```json\n{"a": [1, 2 , ], "b": ", ]" ,\n}\n```',
    ],
    ids=["plain", "spaces", "mark", "fenced", "fenced without a word", "trailing commas", "both"],
)
def test_habits_that_change_no_meaning_are_forgiven(text: str) -> None:
    assert answers.read_object(text) == {"a": [1, 2], "b": ", ]"}


@pytest.mark.fault(75)
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("The report passes.", "not_json"),
        ('Here you are: {"a": 1}', "not_json"),
        ('{"a": 1} I hope that helps.', "not_json"),
        ('```json\n{"a": 1}\n```\nDone.', "not_json"),
        ('{"a": 1}{"a": 2}', "not_json"),
        ('{"a": 1}\n{"a": 2}', "not_json"),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', "not_json"),
        ('[{"a": 1}]', "not_json"),
        ("true", "not_json"),
        ('{"a": NaN}', "not_json"),
        ('{"a": Infinity}', "not_json"),
        ('{"a": 1e999}', "not_json"),
        ('{"a": ' + "9" * 6000 + "}", "not_json"),
        ('{"a": 1, "a": 2}', "not_json"),
        ('{"a": 1', "not_json"),
        ('{"a": [,]}', "not_json"),
        ('{"a": [1,,]}', "not_json"),
        ('{"a":,}', "not_json"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "not_json"),
        ('{"a": ' + "[" * 100_000, "not_json"),
        ('{"a": 1e9}', "bad_number"),
        ('{"a": [{"b": -1000000001}]}', "bad_number"),
        ('{"a": "' + "x" * answers.MOST_CHARS + '"}', "too_long"),
    ],
)
def test_what_is_not_one_object_is_no_vote(text: str, cause: str) -> None:
    with pytest.raises(InvalidVote, match=f"^{cause}$"):
        answers.read_object(text)


def test_an_answer_repeats_its_questions_number_and_has_exactly_the_keys() -> None:
    said = json.dumps({"nonce": NONCE, "passed": True})
    assert answers.read_answer(said, NONCE, ("passed",)) == {"passed": True}
    for nonce in ("f" * 32, ""):
        with pytest.raises(InvalidVote, match=r"^nonce_missing$"):
            answers.read_answer(said, nonce, ("passed",))
    for keys in (("passed", "why"), ()):
        with pytest.raises(InvalidVote, match=r"^schema$"):
            answers.read_answer(said, NONCE, keys)


@pytest.mark.parametrize("value", ["false", "true", 0, 1, None, [], {}, 1.0])
def test_only_true_and_false_are_booleans(value: Any) -> None:
    with pytest.raises(InvalidVote, match=r"^schema$"):
        answers.boolean(value)
    assert answers.boolean(True) is True
    assert answers.boolean(False) is False


@pytest.mark.parametrize("value", [True, 1.0, "1", 0, 4, None])
def test_whole_numbers_are_of_a_range(value: Any) -> None:
    with pytest.raises(InvalidVote, match=r"^schema$"):
        answers.whole(value, 1, 3)
    assert answers.whole(3, 1, 3) == 3


def test_texts_are_cut_and_can_be_stored() -> None:
    assert answers.words("a\0b\ud800") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert len(answers.words("x" * 50_000)) == answers.MOST_REASON
    with pytest.raises(InvalidVote):
        answers.words(None)


def test_a_judge_that_believes_in_the_canary_gives_no_vote() -> None:
    canary.check({"reasoning": "not there", "holds": False})
    for value, cause in [
        ({"reasoning": "there", "holds": True}, "canary_passed"),
        ({"reasoning": "?", "holds": "false"}, "schema"),
        ({"holds": False}, "schema"),
        (None, "schema"),
    ]:
        with pytest.raises(InvalidVote, match=f"^{cause}$"):
            canary.check(value)


def test_a_canary_follows_from_the_seed_and_differs_by_item_and_vote() -> None:
    drawn = {canary.statement("seed", item, n) for item in ("r1", "r2") for n in (1, 2, 3)}
    assert len(drawn) == 6
    assert canary.statement("seed", "r1", 1) == canary.statement("seed", "r1", 1)
    assert canary.statement("other", "r1", 1) not in drawn

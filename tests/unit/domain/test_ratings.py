"""Decisions from ratings: majorities of accept and reject, of choices, and everything that follows a success."""

from itertools import product

import pytest
from pydantic import ValidationError

from service.domain.preferences import Choice, Combination
from service.domain.ratings import (
    Given,
    PairOpinion,
    PairRating,
    PanelRating,
    Purpose,
    Rules,
    Standing,
    pair_standing,
    panel_standing,
)

FIRST, SAME, SECOND = Choice.FIRST, Choice.SAME, Choice.SECOND


def rated(*labels: bool | Choice, purpose: Purpose = Purpose.RATING) -> list[Given]:
    return [Given(purpose, label) for label in labels]


@pytest.mark.parametrize(
    ("accepting", "wanted"),
    [
        ([], Standing(Purpose.RATING, 2)),
        ([True], Standing(Purpose.RATING, 2)),
        ([True, True], Standing(None, 0, True)),
        ([False, False], Standing(None, 0, False)),
        ([True, False], Standing(Purpose.RATING, 3)),
        ([True, False, False], Standing(None, 0, False)),
        ([False, True, True], Standing(None, 0, True)),
    ],
)
def test_two_ratings_and_a_third_where_they_disagree(accepting: list[bool], wanted: Standing) -> None:
    assert panel_standing(rated(*accepting), Rules()) == wanted


def test_the_majority_is_of_accept_and_reject_not_of_three_values() -> None:
    ratings = [PanelRating(rating=n) for n in (1, 2, 3)]
    assert [r.accept for r in ratings] == [False, True, True]
    assert panel_standing(rated(*(r.accept for r in ratings)), Rules()).verdict is True


def test_a_success_is_passed_again_and_a_rejection_is_not() -> None:
    rules = Rules(second_pass=True)
    assert panel_standing(rated(False, False), rules) == Standing(None, 0, False)
    success = rated(True, True)
    assert panel_standing(success, rules) == Standing(Purpose.SECOND_PASS, 1)
    confirmed = [*success, Given(Purpose.SECOND_PASS, True)]
    assert panel_standing(confirmed, rules) == Standing(None, 0, True)
    denied = [*success, Given(Purpose.SECOND_PASS, False)]
    assert panel_standing(denied, rules) == Standing(Purpose.ADJUDICATION, 1)
    for word in (True, False):
        assert panel_standing([*denied, Given(Purpose.ADJUDICATION, word)], rules).verdict is word


def test_an_audit_never_changes_the_verdict() -> None:
    rules = Rules(audited=True)
    assert panel_standing(rated(False, False), rules) == Standing(Purpose.AUDIT, 1, False)
    assert panel_standing([*rated(False, False), Given(Purpose.AUDIT, True)], rules) == Standing(None, 0, False)


def test_any_number_of_ratings_ends_with_a_majority() -> None:
    for per_item in (1, 2, 3, 4):
        for labels in product((True, False), repeat=per_item + 1):
            found = panel_standing(rated(*labels), Rules(per_item))
            assert found == Standing(None, 0, sum(labels) * 2 > len(labels)) or sum(labels) * 2 == len(labels)


@pytest.mark.parametrize(
    ("choices", "verdict"),
    [([FIRST, FIRST], FIRST), ([FIRST, SECOND, FIRST], FIRST), ([FIRST, SAME, SECOND], SAME),
     ([SECOND, SAME, SECOND], SECOND), ([SAME, FIRST, SAME], SAME), ([SAME, SAME], SAME)],
)  # fmt: skip
def test_pairs_are_coded_as_the_golden_vectors_say(choices: list[Choice], verdict: Choice) -> None:
    assert pair_standing(rated(*choices), Rules()) == Standing(None, 0, verdict)
    assert pair_standing(rated(*choices[:1]), Rules()) == Standing(Purpose.RATING, 2)


@pytest.mark.parametrize("choices", [[FIRST, SECOND], [FIRST, SAME], [SAME, SECOND]])
def test_two_choices_that_differ_get_a_third(choices: list[Choice]) -> None:
    assert pair_standing(rated(*choices), Rules()) == Standing(Purpose.RATING, 3)


def test_the_order_in_which_a_rater_saw_a_pair_is_undone() -> None:
    seen = PairRating(completion="a", quality="same", notes="x")
    straight, swapped = seen.opinion(swapped=False), seen.opinion(swapped=True)
    assert (straight.completion, straight.quality) == (FIRST, SAME)
    assert (swapped.completion, swapped.quality) == (SECOND, SAME)
    for turned in (True, False):
        assert seen.opinion(swapped=turned).seen(swapped=turned) == seen


def test_two_scales_become_one_choice_by_the_named_rule() -> None:
    opinion = PairOpinion(completion=SAME, quality=SECOND)
    assert opinion.choice(Combination.COMPLETION_THEN_QUALITY) is SECOND
    assert opinion.choice(Combination.COMPLETION) is SAME


@pytest.mark.parametrize(
    "wrong",
    [{"rating": 0}, {"rating": 2.0}, {"rating": "2"}, {"rating": 1, "failed_early": True, "reason": " "},
     {"rating": 3, "failed_early": True, "reason": "x"}, {"rating": 1, "tags": ["sloppy"]}, {"rating": 1, "notes": "x" * 10_001}],
)  # fmt: skip
def test_what_is_no_rating(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PanelRating.model_validate(wrong)

"""Two scales, 2 + tie-break: the golden vectors of RLI's pair preference."""

from itertools import permutations, product

import pytest

from service.domain.preferences import Choice, Combination, combined, is_split, majority, preference, wants_another

FIRST, SAME, SECOND = Choice.FIRST, Choice.SAME, Choice.SECOND
GOLDEN = [
    ([FIRST, FIRST], 1.0),
    ([FIRST, SECOND, FIRST], 1.0),
    ([FIRST, SAME, SECOND], 0.5),
    ([SECOND, SAME, SECOND], 0.0),
    ([SAME, FIRST, SAME], 0.5),
]


@pytest.mark.parametrize(("choices", "expected"), GOLDEN)
def test_golden_vectors(choices: list[Choice], expected: float) -> None:
    assert {preference(order) for order in permutations(choices)} == {expected}


def test_half_is_no_majority() -> None:
    assert preference([FIRST, FIRST, SAME, SECOND]) == 0.5
    assert majority([FIRST, FIRST, FIRST, SECOND, SAME]) is FIRST


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_swapping_the_order_mirrors_the_preference(n: int) -> None:
    for choices in product(Choice, repeat=n):
        assert preference([c.swapped for c in choices]) == 1 - preference(choices)


def test_no_opinion_is_no_preference() -> None:
    with pytest.raises(ValueError, match="opinion"):
        preference([])


def test_opinions_are_split_where_none_has_more_than_half() -> None:
    split: tuple[list[Choice], ...] = ([], [FIRST, SAME], [FIRST, SECOND, SAME], [FIRST, FIRST, SAME, SECOND])
    assert all(is_split(choices) for choices in split)
    assert not any(is_split(choices) for choices in ([SAME], [SAME, SAME, FIRST], [SECOND, SECOND]))


def test_a_third_is_asked_where_two_differ() -> None:
    assert [wants_another(c) for c in ([], [FIRST], [FIRST, FIRST], [FIRST, SAME], [FIRST, SECOND, SAME])] == [
        True, True, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("completion", "quality", "expected"),
    [
        (FIRST, SECOND, {"completion_then_quality": FIRST, "completion": FIRST, "quality": SECOND, "mean": SAME}),
        (SAME, SECOND, {"completion_then_quality": SECOND, "completion": SAME, "quality": SECOND, "mean": SECOND}),
        (SECOND, SAME, {"completion_then_quality": SECOND, "completion": SECOND, "quality": SAME, "mean": SECOND}),
        (SAME, SAME, dict.fromkeys(["completion_then_quality", "completion", "quality", "mean"], SAME)),
    ],
)
def test_rules_of_combination(completion: Choice, quality: Choice, expected: dict[str, Choice]) -> None:
    assert {rule.value: combined(completion, quality, rule) for rule in Combination} == expected

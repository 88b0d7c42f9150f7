"""Freelance's figures: the published rows that reproduce, and the one that does not."""

import pytest

from service.reporting.test_cases import Checked, Tally, tally

PUBLISHED = {
    "GPT-4o-mini": ((862, 212, 36, 5, 0), 299, 4161, 93.3),
    "Qwen": ((764, 271, 63, 13, 4), 452, 4008, 89.9),
    "Mistral": ((474, 419, 175, 41, 6), 916, 3544, 79.5),
}


def of(histogram: tuple[int, ...]) -> Tally:
    return tally(Checked(4, wrong) for wrong, n in enumerate(histogram) for _ in range(n))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rows(name: str) -> None:
    histogram, wrong, passed, accuracy = PUBLISHED[name]
    found = of(histogram)
    assert (found.attempted, found.tests) == (1115, 4460)
    assert (found.wrong, found.passed) == (wrong, passed)
    assert found.test_accuracy is not None
    assert round(100 * found.test_accuracy, 1) == accuracy
    assert found.solved == histogram[0]
    assert tuple(found.histogram.values()) == histogram


def test_the_paper_contradicts_itself_on_claude() -> None:
    """Its histogram has 269 wrong tests; its text says 287, and 4 173 passed."""
    found = of((877, 210, 25, 3, 0))
    assert (found.wrong, found.passed) == (269, 4191)
    assert (found.wrong, found.passed) != (287, 4173)
    assert found.success_rate == pytest.approx(877 / 1115)


def test_the_papers_money_contradicts_itself_too() -> None:
    """A mean price of $306 over 1 115 tasks is not the $1.6 million in all, nor what 877 solved tasks are said to have earned."""
    assert 306 * 1115 < 1_600_000 / 4
    assert pytest.approx(1735, abs=0.5) == 1_521_617 / 877


def test_numbers_of_tests_may_differ() -> None:
    found = tally([Checked(4, 0), Checked(2, 2), Checked(1, 0)])
    assert (found.solved, found.tests, found.passed) == (2, 7, 5)
    assert found.test_accuracy == pytest.approx(5 / 7)
    assert found.histogram == {0: 2, 1: 0, 2: 1, 3: 0, 4: 0}


def test_certified_is_not_solved() -> None:
    found = tally([Checked(8, 2, certified=True), Checked(8, 3, certified=False), Checked(4, 0)])
    assert (found.solved, found.certified, found.with_passing_score) == (1, 1, 2)


def test_nothing_attempted() -> None:
    found = tally([])
    assert (found.success_rate, found.test_accuracy, found.histogram) == (None, None, {})


@pytest.mark.parametrize(("tests", "wrong"), [(0, 0), (2, 3), (2, -1)])
def test_what_cannot_be_is_refused(tests: int, wrong: int) -> None:
    with pytest.raises(ValueError, match="at least one test"):
        tally([Checked(tests, wrong)])

"""JobBench's aggregates: constants of its leaderboard, and what missing tasks do to each figure."""

import pytest

from service.reporting.rubric_scores import Expected, TaskScore, mean_score, rubric_scores


def score(earned: float, possible: float, passed: int = 0, rubrics: int = 1) -> TaskScore:
    return TaskScore(earned / possible, earned, possible, passed, rubrics)


TWO = {"a": score(10, 10, 1, 1), "b": score(10, 90, 1, 9)}
ALL = {"a": Expected(10, 1), "b": Expected(90, 9)}


def test_macro_and_micro_are_different_things() -> None:
    found = rubric_scores(TWO, ALL)
    assert found.macro == pytest.approx((1 + 1 / 9) / 2)
    assert found.micro == pytest.approx(0.2)
    assert found.rubric_pass_rate == pytest.approx(0.2)
    assert (found.tasks, found.done, found.missing, found.earned, found.possible) == (2, 2, 0, 20, 100)


@pytest.mark.parametrize(
    ("earned", "possible", "shown"), [(2516, 4372, 57.55), (28, 130, 21.54)], ids=["overall", "occupation"]
)
def test_published_sums_are_micro(earned: float, possible: float, shown: float) -> None:
    """Constants of the site: Σ score / Σ max in percent, two decimals."""
    done = {"a": score(earned / 2, possible / 4), "b": score(earned / 2, 3 * possible / 4)}
    micro = rubric_scores(done, dict.fromkeys(done, Expected(None))).micro
    assert micro is not None
    assert round(100 * micro, 2) == shown


def test_an_occupation_was_once_shown_as_the_mean_of_its_tasks() -> None:
    """28 of 130 points were 23.13 on the site for a while: no way of summing gives that, only a mean of tasks."""
    shares = [(8, 60), (20, 70)]
    done = {str(n): score(earned, possible) for n, (earned, possible) in enumerate(shares)}
    found = rubric_scores(done, dict.fromkeys(done, Expected(None)))
    assert found.micro is not None
    assert round(100 * found.micro, 2) == 21.54
    assert found.macro is not None
    assert round(100 * found.macro, 2) != round(100 * found.micro, 2)


@pytest.mark.parametrize("possible", [4350, 4428, 4440])
def test_rows_with_reduced_maxima_left_their_missing_tasks_out(possible: int) -> None:
    """Three published rows have 63 or 64 tasks and less than 4 500 points: with zeros they would be lower."""
    done = {"all others": score(2000, possible)}
    expected = {"all others": Expected(possible), "missing": Expected(4500 - possible)}
    left_out, as_zero = (rubric_scores(done, expected, how).micro for how in ("exclude", "zero"))
    assert left_out == pytest.approx(2000 / possible)
    assert as_zero == pytest.approx(2000 / 4500)


def test_a_row_that_lists_64_tasks_and_sums_over_65_is_inconsistent() -> None:
    """One published row leaves its missing task out of the breakdown and has it in the total: no single policy does both."""
    done = {f"t{n}": score(30, 69) for n in range(64)}
    expected = {**{t: Expected(69) for t in done}, "missing": Expected(4500 - 64 * 69)}
    for how in ("zero", "exclude"):
        found = rubric_scores(done, expected, how)
        assert (found.tasks, found.possible) != (64, 4500)


def test_zero_counts_missing_tasks_in_all_figures() -> None:
    found = rubric_scores({"a": TWO["a"]}, ALL, "zero")
    assert (found.macro, found.micro, found.rubric_pass_rate) == pytest.approx((0.5, 0.1, 0.1))
    assert (found.tasks, found.done, found.missing) == (2, 1, 1)


def test_zero_leaves_undefined_what_nobody_knows() -> None:
    found = rubric_scores({"a": TWO["a"]}, {"a": Expected(10, 1), "b": Expected(None)}, "zero")
    assert (found.macro, found.micro, found.rubric_pass_rate) == (0.5, None, None)
    assert rubric_scores({"a": TWO["a"]}, {"a": Expected(10, 1), "b": Expected(None)}, "exclude").micro == 1.0


def test_exclude_and_refuse() -> None:
    excluded = rubric_scores({"a": TWO["a"]}, ALL, "exclude")
    assert (excluded.macro, excluded.micro, excluded.tasks, excluded.missing) == (1.0, 1.0, 1, 1)
    refused = rubric_scores({"a": TWO["a"]}, ALL, "refuse")
    assert (refused.macro, refused.micro, refused.rubric_pass_rate) == (None, None, None)
    assert rubric_scores(TWO, ALL, "refuse").macro is not None


def test_nothing_at_all() -> None:
    found = rubric_scores({}, {}, "exclude")
    assert (found.macro, found.micro, found.rubric_pass_rate, found.tasks) == (None, None, None, 0)
    assert rubric_scores({}, ALL, "zero").macro == 0


def test_unexpected_tasks_count_nowhere() -> None:
    done = {**TWO, "elsewhere": score(1, 1)}
    assert rubric_scores(done, ALL) == rubric_scores(TWO, ALL)


def test_samples_of_a_task_are_one_task() -> None:
    samples = [score(10, 10, 2, 2), score(4, 10, 1, 2), score(1, 10, 0, 2)]
    found = mean_score(samples)
    assert (found.fraction, found.earned, found.rubrics_passed) == pytest.approx((0.5, 5.0, 1.0))
    assert (found.possible, found.rubrics) == (10, 2)
    assert mean_score([samples[0], TaskScore(0.0, 0.0, None)]).possible is None

"""Figures of a probe, from tables that are small enough to count by hand."""

from service.domain.probes import Outcome, Shift
from service.reporting.probing import compared, concerns, failures, repeats, shift


def row(run: str, fraction: float | None, **answers: bool) -> Outcome:
    return Outcome(run, fraction, answers, None if fraction is not None else "judge_error")


FIRST = [row("a", 1.0, x=True, y=True), row("b", 0.5, x=True, y=False), row("c", None)]
SECOND = [row("a", 1.0, x=True, y=True), row("b", 1.0, x=True, y=True), row("c", 0.0, x=False, y=False)]


def test_repeats_leave_out_what_had_no_verdict() -> None:
    found = repeats([FIRST, SECOND])
    assert (found.deliverables, found.items) == (2, 4)
    assert found.agreement == 0.75
    assert (found.flips.count, found.flips.n, found.flips.rate) == (1, 2, 0.5)
    assert found.fraction_spread == 0.25
    assert found.kappa is not None
    assert found.kappa < 0, "one no among seven yes: chance alone would agree as often"


def test_repeats_of_nothing_are_undefined() -> None:
    found = repeats([[row("a", None)], [row("a", None)]])
    assert (found.deliverables, found.kappa, found.agreement, found.flips.rate) == (0, None, None, None)


def test_a_shift_counts_who_passes_only_when_altered() -> None:
    altered = [row("a", 0.5), row("b", 1.0), row("c", 1.0)]
    found = shift([FIRST, FIRST], altered, seed=1)
    assert (found.n, found.mean, found.up, found.down, found.higher) == (2, 0.0, 1, 1, 1)


def test_higher_is_higher_than_any_repeat() -> None:
    altered = [row("a", 1.0), row("b", 1.0)]
    assert shift([FIRST, SECOND], altered, seed=1).higher == 0
    assert shift([FIRST, SECOND], altered, seed=1).up == 1


def test_what_came_to_no_verdict_is_counted_and_no_zero() -> None:
    found = shift([FIRST], [row("a", None), row("b", 0.5)], seed=1)
    assert (found.n, found.mean, found.failed) == (1, 0.0, 1)
    assert failures([*FIRST, row("d", None)]) == {"judge_error": 2}


def test_compared_with_people() -> None:
    found = compared("human_panel", FIRST, {"a": True, "b": True, "z": False})
    assert (found.n, found.agreement, found.passed.count, found.passed_there.count) == (2, 0.5, 1, 2)
    assert compared("x", FIRST, {}).kappa is None


def test_concerns_are_said_of_what_stands_out_alone() -> None:
    calm = Shift(n=10, mean=0.0, interval=(-0.01, 0.01))
    own = repeats([SECOND, SECOND])
    assert concerns(own, {"quarter": Shift(n=10, mean=-0.5)}, {"claim": calm}, {"note": calm}, {"length": calm}) == []
    said = concerns(
        repeats([FIRST, SECOND]),
        {"empty": Shift(n=10, mean=0.0)},
        {"claim": Shift(n=10, mean=0.1, up=1)},
        {"note": Shift(n=10, mean=-0.2, interval=(-0.3, -0.1), down=2)},
        {"length": Shift(n=10, mean=0.2, interval=(0.1, 0.3), up=2)},
    )
    assert len(said) == 5

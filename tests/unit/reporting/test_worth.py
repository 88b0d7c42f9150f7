"""Automation rate, dollars and autoflation: RLI's constants and golden vectors."""

from datetime import UTC, date, datetime, timedelta

import pytest

from service.reporting.agreement import no_failure_bound
from service.reporting.autoflation import AcceptedRun, autoflation
from service.reporting.automation import automation
from service.reporting.dollars import Work, cumulative, dollars, thinned

AT = datetime(2026, 11, 1, tzinfo=UTC)
DAY = date(2026, 1, 1)


@pytest.mark.parametrize(("k", "percent"), [(6, 2.5), (5, 2.08), (4, 1.67), (3, 1.25), (2, 0.83)])
def test_published_rates_are_k_of_240_and_not_of_the_230_private_ones(k: int, percent: float) -> None:
    of_240, of_230 = (automation([True] * k + [False] * (n - k)).rate or 0.0 for n in (240, 230))
    assert round(100 * of_240, 2) == percent
    assert round(100 * of_230, 2) != percent


def test_no_failure_in_fifty_checks() -> None:
    bound = no_failure_bound(50)
    assert bound is not None
    assert round(100 * bound, 2) == 5.82


def test_rate_of_nothing() -> None:
    assert automation([]).rate is None
    assert automation([False] * 3).interval is not None


def test_dollars_leave_unpriced_tasks_out_and_count_them() -> None:
    found = dollars([Work(200, 1), Work(1000, 0), Work(None, 1), Work(50, 0.5)])
    assert (found.priced, found.unpriced, found.solved_unpriced) == (3, 1, 1)
    assert (found.earned_usd, found.possible_usd) == (225, 1250)
    assert found.share == pytest.approx(0.18)
    assert found.mean_price_of_solved_usd == pytest.approx(150)


def test_dollars_of_nothing_solved() -> None:
    found = dollars([Work(10, 0)])
    assert (found.share, found.mean_price_of_solved_usd) == (0, None)
    assert dollars([Work(None, 1)]).share is None


def test_value_comes_in_as_tasks_end() -> None:
    works = [Work(50, 1, AT + timedelta(hours=2)), Work(200, 1, AT), Work(None, 1, AT + timedelta(hours=1)), Work(9, 1)]
    points = cumulative(works)
    assert [(p.done, p.solved, p.earned_usd) for p in points] == [(1, 1, 200), (2, 2, 200), (3, 3, 250)]


def test_long_curves_keep_their_ends() -> None:
    points = cumulative([Work(1, 1, AT + timedelta(minutes=n)) for n in range(1000)])
    found = thinned(points, 50)
    assert (len(found), found[0], found[-1]) == (50, points[0], points[-1])
    assert thinned(points[:3], 50) == points[:3]


def test_autoflation_golden() -> None:
    prices = {"p1": 200.0, "p2": 1000.0, "p3": 50.0, "p4": None}
    runs = [AcceptedRun(p, DAY, c) for p, c in [("p1", 5.0), ("p1", 3.0), ("p3", 80.0), ("p4", 1.0)]]
    found = autoflation(prices, runs)
    (step,) = found.steps
    assert step.reduction_usd == pytest.approx(197)
    assert step.autoflation == pytest.approx(0.1576)
    assert (step.projects, found.basket, found.basket_usd, found.unpriced) == (1, 3, 1250, 1)


def test_autoflation_only_grows_and_looks_at_what_was_out() -> None:
    runs = [
        AcceptedRun("p", date(2026, 3, 1), 10.0),
        AcceptedRun("p", date(2026, 1, 1), 40.0),
        AcceptedRun("p", date(2026, 2, 1), 60.0),
    ]
    steps = autoflation({"p": 100.0}, runs).steps
    assert [(s.on.month, s.reduction_usd) for s in steps] == [(1, 60), (2, 60), (3, 90)]


def test_autoflation_counts_what_it_cannot_use() -> None:
    runs = [AcceptedRun("p", None, 1.0), AcceptedRun("p", DAY, None), AcceptedRun("x", DAY, 1.0)]
    found = autoflation({"p": 100.0, "q": None}, runs)
    assert (found.steps, found.undated, found.uncosted, found.unpriced) == ([], 1, 1, 1)
    assert autoflation({}, []).steps == []

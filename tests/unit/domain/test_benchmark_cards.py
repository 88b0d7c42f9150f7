"""Figures of a benchmark's card, against values worked out by hand."""

import math
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.benchmark_cards import Worth, bases, correlation, distribution


def test_a_distribution() -> None:
    found = distribution([4, None, 1, 2, 3])
    assert found is not None
    assert (found.n, found.missing, found.total, found.mean, found.least, found.most) == (4, 1, 10, 2.5, 1, 4)
    assert found.quantiles == pytest.approx({"p10": 1.3, "p25": 1.75, "p50": 2.5, "p75": 3.25, "p90": 3.7})


def test_nothing_is_no_distribution() -> None:
    assert distribution([None, None]) is None
    assert distribution([]) is None
    one = distribution([7.0])
    assert one is not None
    assert set(one.quantiles.values()) == {7.0}


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_quantiles_lie_in_order_within_the_ends(values: list[float]) -> None:
    found = distribution(values)
    assert found is not None
    places = [found.least, *found.quantiles.values(), found.most]
    assert all(a <= b or math.isclose(a, b) for a, b in pairwise(places))


def worth(price: str | None, hours: float | None, basis: str | None = "posted") -> Worth:
    return Worth(None if price is None else Decimal(price), basis, hours)


def test_prices_that_are_a_power_of_hours_lie_on_a_line() -> None:
    line = [
        worth("2", 1),
        worth("8", 2),
        worth("32", 4),
        worth(None, 3),
        worth("5", None),
        worth("0", 1),
        worth("1", 0),
    ]
    found = correlation(line)
    assert found.n == 3
    assert found.r == pytest.approx(1)
    # log 10 against log 1, 2 and 4: (1, 2), (10, 1), (100, 4) has r = 1/2.
    found = correlation([worth("1", 2), worth("10", 1), worth("100", 4)])
    assert found.r == pytest.approx(0.5)


def test_what_has_no_correlation() -> None:
    assert correlation([worth("1", 1), worth("2", 2)]).r is None
    assert correlation([worth("1", 1), worth("1", 2), worth("1", 3)]).r is None
    assert correlation([worth("1", 2), worth("2", 2), worth("3", 2)]).r is None


def test_bases() -> None:
    assert bases([worth("1", 1), worth(None, 1, "imputed"), worth("1", 1), worth(None, None, None)]) == {
        "imputed": 1,
        "posted": 2,
    }

"""How far a budget is used up, and what is told of it once."""

from decimal import Decimal

import pytest

from service.domain.spending import Level, Use, dollars, mark, told


@pytest.mark.parametrize(
    ("spent", "level"),
    [("0", Level.FINE), ("7.999999", Level.FINE), ("8", Level.WARNED), ("9.999999", Level.WARNED), ("10", Level.FULL),
     ("11", Level.FULL)],
)  # fmt: skip
def test_levels(spent: str, level: Level) -> None:
    assert Use(Decimal(10), Decimal(spent)).level is level


def test_what_is_under_way_closes_it_and_warns_nobody() -> None:
    use = Use(Decimal(10), Decimal(3), Decimal(7))
    assert not use.is_open
    assert use.level is Level.FINE
    assert Use(Decimal(10), Decimal(3), Decimal("6.99")).is_open


def test_a_budget_of_nothing_is_full() -> None:
    assert Use(Decimal(0), Decimal(0)).level is Level.FULL


def test_told_once_per_level_and_limit() -> None:
    warned, full = Use(Decimal(10), Decimal(8)), Use(Decimal(10), Decimal(10))
    assert not told({}, "agents_usd", Use(Decimal(10), Decimal(1)))
    assert told({}, "agents_usd", warned)
    assert not told({"agents_usd": mark(warned)}, "agents_usd", Use(Decimal(10), Decimal(9)))
    assert told({"agents_usd": mark(warned)}, "agents_usd", full)
    assert told({"agents_usd": mark(warned)}, "agents_usd", Use(Decimal(11), Decimal(9)))
    assert told({"judges_usd": mark(warned)}, "agents_usd", warned)


@pytest.mark.parametrize(
    ("value", "shown"), [("0", "0"), ("0.00", "0"), ("100", "100"), ("1E+2", "100"), ("0.0000010", "0.000001")]
)
def test_dollars(value: str, shown: str) -> None:
    assert dollars(Decimal(value)) == shown

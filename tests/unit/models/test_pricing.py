"""Dollars of a request: the catalogue's prices, else the pinned list; a part without a price makes the whole unknown."""

from datetime import date
from decimal import Decimal
from importlib.metadata import version
from typing import Any

import pytest

from service.domain.models import CostBasis, Dialect, TokenUsage
from service.models.pricing import LIST_DATE, LIST_VERSION, cost_of, upper_bound
from tests.unit.gateway.dialects.answers import spec

_USAGE = TokenUsage(
    input_tokens=700, cached_input_tokens=200, cache_write_tokens=100, output_tokens=10, reasoning_tokens=4
)
_PRICES: dict[str, Any] = {
    "input_usd": "3", "cached_input_usd": "0.3", "cache_write_usd": "3.75", "output_usd": "15", "per_call_usd": "0.001",
    "per_tool_use_usd": {"web_search": "0.01"}, "as_of": "2026-01-02",
}  # fmt: skip


def test_the_catalogues_prices_come_first() -> None:
    mine = spec(Dialect.ANTHROPIC, provider="anthropic", upstream_id="claude-sonnet-4-5", prices=_PRICES)
    cost = cost_of(mine, _USAGE, {"web_search": 2})
    # 700·3 + 200·0.3 + 100·3.75 + 10·15 millionths, one call, two searches
    assert cost.usd == Decimal("0.002685") + Decimal("0.001") + Decimal("0.02")
    assert (cost.basis, cost.price_date) == (CostBasis.MEASURED, date(2026, 1, 2))
    assert upper_bound(mine, 1_000_000, 0) == Decimal("3.001")


@pytest.mark.parametrize(
    "missing", ["input_usd", "cached_input_usd", "cache_write_usd", "output_usd", "per_tool_use_usd"]
)
def test_a_part_without_a_price_makes_the_whole_unknown(missing: str) -> None:
    prices = {key: value for key, value in _PRICES.items() if key != missing}
    cost = cost_of(spec(Dialect.ANTHROPIC, prices=prices), _USAGE, {"web_search": 2})
    assert (cost.usd, cost.basis, cost.price_date) == (None, CostBasis.UNKNOWN, None)
    if missing != "input_usd":
        assert cost_of(spec(Dialect.ANTHROPIC, prices=prices), TokenUsage(input_tokens=1), {}).usd is not None


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        # 700·3 + 200·0.3 + 100·3.75 + 10·15 millionths
        ("anthropic", "claude-sonnet-4-5", "0.002685"),
        # 700·1.25 + 200·0.125 + 100·1.25 + 10·10
        ("google", "gemini-2.5-pro", "0.001125"),
    ],
)
def test_the_list_prices_what_it_knows(provider: str, model: str, usd: str) -> None:
    cost = cost_of(spec(Dialect.ANTHROPIC, provider=provider, upstream_id=model), _USAGE, {})
    assert (cost.usd, cost.price_date) == (Decimal(usd), LIST_DATE)


def test_the_list_knows_a_provider_by_its_address_and_none_by_a_models_name() -> None:
    there = spec(Dialect.ANTHROPIC, upstream_id="claude-sonnet-4-5", base_url="https://api.anthropic.com")
    assert cost_of(there, _USAGE, {}).usd == Decimal("0.002685")
    elsewhere = spec(Dialect.ANTHROPIC, upstream_id="claude-sonnet-4-5", base_url="https://resold.test")
    assert cost_of(elsewhere, _USAGE, {}).usd is None


def test_an_unknown_model_costs_null_and_never_nothing() -> None:
    for provider, model in (("anthropic", "claude-nope-9"), ("nobody", "m"), ("scripted", "scripted-1")):
        cost = cost_of(spec(Dialect.ANTHROPIC, provider=provider, upstream_id=model), _USAGE, {})
        assert (cost.usd, cost.basis) == (None, CostBasis.UNKNOWN)
    assert upper_bound(spec(Dialect.ANTHROPIC), 10, 10) is None


def test_provider_side_tools_are_priced_by_use() -> None:
    claude = spec(Dialect.ANTHROPIC, provider="anthropic", upstream_id="claude-sonnet-4-5")
    plain = cost_of(claude, _USAGE, {}).usd
    assert plain is not None
    assert cost_of(claude, _USAGE, {"web_search": 3, "web_fetch": 5}).usd == plain + Decimal("0.03")
    assert cost_of(claude, _USAGE, {"code_execution": 1}).usd is None
    assert cost_of(claude, _USAGE, {"code_execution": 0}).usd == plain


def test_the_lists_day_belongs_to_the_installed_version() -> None:
    assert version("genai-prices") == LIST_VERSION, "look up the newest day in the new list, then change both"

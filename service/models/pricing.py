"""What a request cost: by the catalogue's own prices, else by the price list of ``genai-prices``.

The list is the installed package's: it is pinned with it and never updates itself. Where any part of a request has no
known price, the whole cost is unknown: null, never 0 and never a part.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from genai_prices import Usage, calc_price
from genai_prices.types import PriceCalculation

from service.domain.models import Cost, CostBasis, ModelSpec, Prices, TokenUsage

LIST_VERSION = "0.2.3"
LIST_DATE = date(2026, 11, 9)
"""Newest day in the price list of that version of ``genai-prices``, which bears no date itself."""
_MILLION = Decimal(1_000_000)
_UNITS = {
    "web_search": "web_searches",
    "google_search": "web_searches",
    "file_search": "storage_searches",
}
_IN_TOKENS = frozenset({"web_fetch", "url_context", "tool_search_tool_regex", "tool_search_tool_bm25"})
"""Provider-side tools that cost what their tokens cost."""


def cost_of(spec: ModelSpec, usage: TokenUsage, tools: Mapping[str, int]) -> Cost:
    """Return what one finished request cost. ``tools``: uses of provider-side tools by name."""
    if spec.prices is not None:
        return _cost(_by_catalogue(spec.prices, usage, tools), spec.prices.as_of)
    return _cost(_by_list(spec, usage, tools), LIST_DATE)


def upper_bound(spec: ModelSpec, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Return what a request of so many tokens can cost in dollars, to reserve it; null where no price is known."""
    return cost_of(spec, TokenUsage(input_tokens=input_tokens, output_tokens=output_tokens), {}).usd


def _cost(usd: Decimal | None, day: date) -> Cost:
    return Cost() if usd is None else Cost(usd=usd, basis=CostBasis.MEASURED, price_date=day)


def _by_catalogue(prices: Prices, usage: TokenUsage, tools: Mapping[str, int]) -> Decimal | None:
    parts = [
        (usage.input_tokens, prices.input_usd, _MILLION),
        (usage.cached_input_tokens, prices.cached_input_usd, _MILLION),
        (usage.cache_write_tokens, prices.cache_write_usd, _MILLION),
        (usage.output_tokens, prices.output_usd, _MILLION),
        *((uses, prices.per_tool_use_usd.get(name), Decimal(1)) for name, uses in tools.items()),
    ]
    total = Decimal(prices.per_call_usd or 0)
    for number, price, per in parts:
        if number and price is None:
            return None
        total += number * Decimal(price or 0) / per
    return total


def _by_list(spec: ModelSpec, usage: TokenUsage, tools: Mapping[str, int]) -> Decimal | None:
    tokens = _priced(spec, usage, {})
    if tokens is None:
        return None
    total = tokens
    for name, uses in tools.items():
        if name in _IN_TOKENS or not uses:
            continue
        unit = _UNITS.get(name)
        # A use that adds nothing to the price has none in the list.
        added = _priced(spec, usage, {unit: uses}) if unit else None
        if added is None or added == tokens:
            return None
        total += added - tokens
    return total


def _priced(spec: ModelSpec, usage: TokenUsage, uses: Mapping[str, int]) -> Decimal | None:
    counted = Usage(
        input_tokens=usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        **uses,
    )
    found = _look_up(spec, counted)
    if found is None or not _covers(found, usage):
        return None
    return found.total_price


def _covers(found: PriceCalculation, usage: TokenUsage) -> bool:
    """Tell whether the list names a price for both sides; it counts nothing for what it has none for."""
    price = found.model_price
    has_input = price.input_mtok is not None or usage.total == usage.output_tokens
    return has_input and (price.output_mtok is not None or not usage.output_tokens)


def _look_up(spec: ModelSpec, usage: Usage) -> PriceCalculation | None:
    """A provider that the list does not know by its name may be known by its address, never by the model's name: who
    resells a model sets another price."""
    try:
        return calc_price(usage, spec.upstream_id, provider_id=spec.provider)
    except (LookupError, ValueError):
        pass
    try:
        return calc_price(usage, spec.upstream_id, provider_api_url=spec.base_url)
    except (LookupError, ValueError):
        return None

"""Rules of derived benchmarks: what they let through, what they draw, and that the same rule draws the same."""

from decimal import Decimal
from typing import Any

import pytest

from service.domain.derivations import NONE, DeriveRule, choose
from service.domain.evaluation_plans import Item

KINDS = ["a"] * 6 + ["b"] * 3 + ["c"]


def items() -> list[Item]:
    made = [item(f"i{n}", {"kind": kind, "n": n}) for n, kind in enumerate(KINDS)]
    return [*made, item("bare", {}), item("both", {"kind": ["b", "a"]})]


def item(key: str, facets: Any) -> Item:
    return Item(key=key, task_id=f"task_{key}", name=f"t/{key}", digest=key, facets=facets)


def keys(rule: dict[str, Any], prices: dict[str, Decimal | None] | None = None) -> list[str]:
    return [one.key for one in choose(items(), prices or {}, DeriveRule.model_validate(rule)).items]


def test_everything_in_its_order_without_a_rule() -> None:
    assert keys({}) == [one.key for one in items()]


def test_patterns_facets_and_prices_must_all_hold() -> None:
    prices: dict[str, Decimal | None] = {f"i{n}": Decimal(n) for n in range(9)}
    assert keys({"include": ["i*"], "exclude": ["i0"], "facets": {"kind": ["a"]}}) == ["i1", "i2", "i3", "i4", "i5"]
    assert keys({"price": {"least_usd": "2", "most_usd": "4"}}, prices) == ["i2", "i3", "i4"]
    assert keys({"price": {"least_usd": "7.5"}}, prices) == ["i8"]  # nothing is said of the price of i9
    found = choose(items(), prices, DeriveRule(include=["i1", "nothing*"]))
    assert (found.fitting, found.useless, found.strata) == (1, ["nothing*"], [])


def test_strata_are_counted_and_those_that_nothing_fits_are_named() -> None:
    rule = {"sample": {"stratify": "kind", "per_stratum": 2}}
    found = choose(items(), {}, DeriveRule.model_validate(rule))
    told = [(one.name, one.fitting, one.taken) for one in found.strata]
    assert told == [(NONE, 1, 1), ("a", 6, 2), ("a + b", 1, 1), ("b", 3, 2), ("c", 1, 1)]
    assert len(found.items) == 7
    wanted = {"sample": {"stratify": "kind", "strata": ["a", "z"]}}
    some = choose(items(), {}, DeriveRule.model_validate(wanted))
    assert ([one.key for one in some.items], some.empty) == ([f"i{n}" for n in range(6)], ["z"])


def test_shares_go_by_largest_remainders() -> None:
    rule = {"include": ["i*"], "sample": {"stratify": "kind", "total": 5, "proportional": True}}
    found = choose(items(), {}, DeriveRule.model_validate(rule))
    # 5 of 10: 3, 1.5 and 0.5; the one that is left goes to one of the two with half a share over.
    taken = {one.name: one.taken for one in found.strata}
    assert (taken["a"], taken["b"] + taken["c"], len(found.items)) == (3, 2, 5)
    more = {"sample": {"stratify": "kind", "total": 50, "proportional": True}}
    assert keys(more) == [one.key for one in items()]


def test_strata_give_in_turn_where_shares_are_not_asked_for() -> None:
    found = choose(items(), {}, DeriveRule.model_validate({"sample": {"stratify": "kind", "total": 5}}))
    assert {one.taken for one in found.strata} == {1}


@pytest.mark.parametrize("sample", [{"total": 4}, {"stratify": "kind", "per_stratum": 1}])
def test_the_seed_and_the_keys_alone_decide(sample: dict[str, Any]) -> None:
    rule = DeriveRule.model_validate({"sample": sample, "seed": 3})
    first = {one.key for one in choose(items(), {}, rule).items}
    assert {one.key for one in choose([*reversed(items())], {}, rule).items} == first
    others = {frozenset(keys({"sample": sample, "seed": seed})) for seed in range(20)}
    assert len(others) > 1


@pytest.mark.parametrize(
    "rule",
    [
        {"sample": {"per_stratum": 1}}, {"sample": {"strata": ["a"]}}, {"sample": {"total": 3, "proportional": True}},
        {"sample": {"stratify": "kind", "proportional": True}}, {"price": {"least_usd": "2", "most_usd": "1"}},
        {"sample": {"stratify": "k", "total": 3, "proportional": True, "per_stratum": 1}}, {"sample": {"total": 0}},
    ],
)  # fmt: skip
def test_rules_that_say_nothing_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        DeriveRule.model_validate(rule)

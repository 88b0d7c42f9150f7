"""Reservation and settlement: what parallel requests may take together."""

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.policies import RunBudget
from service.gateway.budgets import Budget, BudgetExhausted
from service.store.rows_requests import Spent


async def test_requests_are_counted_when_they_begin() -> None:
    budget = Budget(RunBudget(max_requests=2), Spent(requests=1))
    await budget.reserve(10, None)
    with pytest.raises(BudgetExhausted, match="all 2 requests"):
        await budget.reserve(10, None)


async def test_a_request_that_was_never_forwarded_counts_for_nothing() -> None:
    budget = Budget(RunBudget(max_requests=1, max_tokens=10))
    budget.forget(await budget.reserve(10, None))
    await budget.reserve(10, None)


async def test_one_that_fits_but_for_reservations_waits_for_them() -> None:
    budget = Budget(RunBudget(max_tokens=100))
    first = await budget.reserve(80, None)
    second = asyncio.create_task(budget.reserve(80, None))
    await asyncio.sleep(0)
    assert not second.done()
    budget.settle(first, 20, None)
    await second
    assert budget.spent == Spent(2, 20, Decimal(0))


async def test_one_that_cannot_fit_any_more_is_refused_while_others_run() -> None:
    budget = Budget(RunBudget(max_usd="1"), Spent(usd=Decimal("0.5")))
    await budget.reserve(1, Decimal("0.4"))
    with pytest.raises(BudgetExhausted, match=r"0\.5 of 1 dollars"):
        await budget.reserve(1, Decimal("0.6"))


async def test_what_is_not_known_is_what_was_reserved() -> None:
    budget = Budget(RunBudget(max_tokens=100, max_usd="1"))
    budget.settle(await budget.reserve(60, Decimal("0.6")), None, None)
    assert budget.spent == Spent(1, 60, Decimal("0.6"))
    with pytest.raises(BudgetExhausted):
        await budget.reserve(60, None)


async def test_dollars_that_nobody_knows_do_not_count() -> None:
    budget = Budget(RunBudget(max_usd="0.01"))
    for _ in range(3):
        budget.settle(await budget.reserve(1000, None), 1000, None)


async def test_requests_that_cost_no_tokens_pass_a_spent_token_budget() -> None:
    budget = Budget(RunBudget(max_tokens=10), Spent(tokens=10))
    await budget.reserve(0, None)


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=30), st.integers(0, 100))
def test_what_is_spent_never_exceeds_the_limit(requests: list[tuple[int, int]], limit: int) -> None:
    async def ask(budget: Budget, reserve: int, take: int) -> None:
        try:
            reserved = await budget.reserve(reserve, None)
        except BudgetExhausted:
            return
        await asyncio.sleep(0)
        budget.settle(reserved, min(take, reserve), None)

    async def all_of_them() -> Spent:
        budget = Budget(RunBudget(max_tokens=limit))
        await asyncio.gather(*(ask(budget, *one) for one in requests))
        return budget.spent

    assert asyncio.run(all_of_them()).tokens <= limit

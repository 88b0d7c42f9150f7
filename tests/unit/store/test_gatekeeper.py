"""What one claim may take of runs that share rooms and budgets, counted one by one."""

from decimal import Decimal
from typing import Any

from service.store.evaluations.gates import Dollars, Gatekeeper


def candidate(**changes: Any) -> dict[str, Any]:
    rooms = dict.fromkeys(("total_room", "agent_room", "model_room", "provider_room"))
    return {
        "gate_evaluation": "e", "gate_agent": "a", "gate_model": "m", "gate_provider": "p", "agent_id": "a", "project_id": "prj",
        "budget": {}, **rooms, **changes,
    }  # fmt: skip


def take(keeper: Gatekeeper, *candidates: dict[str, Any]) -> list[bool]:
    taken: list[bool] = []
    for one in candidates:
        taken.append(keeper.lets(one))
        if taken[-1]:
            keeper.take(one)
    return taken


def test_without_a_gate_everything_goes() -> None:
    assert take(Gatekeeper(), *[candidate(gate_evaluation=None)] * 3) == [True] * 3


def test_a_total_is_shared_by_agents() -> None:
    two = [candidate(total_room=3), candidate(total_room=3, gate_agent="b", agent_id="b")]
    assert take(Gatekeeper(), *two, *two) == [True, True, True, False]


def test_each_agent_has_its_own_room() -> None:
    a, b = candidate(agent_room=1), candidate(agent_room=1, gate_agent="b")
    assert take(Gatekeeper(), a, a, b, b) == [True, False, True, False]


def test_a_models_agents_share_its_room_and_others_do_not() -> None:
    a, b, c = (candidate(model_room=1, gate_agent=x, gate_model=m) for x, m in (("a", "m"), ("b", "m"), ("c", "n")))
    assert take(Gatekeeper(), a, b, c) == [True, False, True]


def test_a_providers_models_share_its_room() -> None:
    a, b = candidate(provider_room=1), candidate(provider_room=1, gate_model="n")
    assert take(Gatekeeper(), a, b) == [True, False]


def test_no_room_and_less_than_none() -> None:
    assert take(Gatekeeper(), candidate(total_room=0), candidate(total_room=-2)) == [False, False]


def test_evaluations_do_not_share() -> None:
    assert take(Gatekeeper(), candidate(total_room=1), candidate(total_room=1, gate_evaluation="f")) == [True, True]


def test_dollars_by_the_runs_own_budget_else_by_the_mean() -> None:
    keeper = Gatekeeper(dollars={"e": Dollars(Decimal(5), {"a": Decimal(2)})})
    rich = candidate(budget={"max_usd": "4"})
    assert take(keeper, rich, candidate(), candidate()) == [True, True, False]
    assert keeper.dollars["e"].left == Decimal(-1)


def test_what_nobody_knows_counts_as_nothing_and_what_is_used_up_lets_nothing_begin() -> None:
    assert take(Gatekeeper(dollars={"e": Dollars(Decimal(1))}), *[candidate()] * 3) == [True] * 3
    assert take(Gatekeeper(dollars={"e": Dollars(Decimal(0))}), candidate()) == [False]


def test_a_projects_budget_holds_back_runs_without_an_evaluation() -> None:
    keeper = Gatekeeper(dollars={"prj": Dollars(Decimal(3), otherwise=Decimal(2))})
    assert take(keeper, *[candidate(gate_evaluation=None)] * 3) == [True, True, False]

"""How runs count: every exclusion, its order, the benchmark's policies, and that no failure becomes a score."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.benchmarks import Policies
from service.domain.counting import LIMITS, Counted, Exclusion, Facts, counted
from service.domain.run_states import INFRASTRUCTURE, EndedBecause, Flag, Outcome, Phase

GOOD: dict[str, Any] = {
    "phase": "done", "outcome": "graded", "ended_because": "completed", "flags": (), "score": 3.0, "max_score": 4.0,
}  # fmt: skip


def facts(**changes: Any) -> Facts:
    return Facts(**{**GOOD, **changes})


def test_a_graded_run_counts_as_its_fraction() -> None:
    assert counted(facts(), Policies()) == Counted(0.75)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"flags": ("control",)}, Exclusion.CONTROL),
        ({"flags": ("preflight",)}, Exclusion.PREFLIGHT),
        ({"outcome": "invalidated"}, Exclusion.INVALIDATED),
        ({"phase": "grading", "outcome": None}, Exclusion.NOT_DONE),
        ({"outcome": "cancelled", "ended_because": "cancelled"}, Exclusion.CANCELLED),
        ({"flags": ("assisted",)}, Exclusion.ASSISTED),
        ({"ended_because": "stopped"}, Exclusion.STOPPED),
        ({"ended_because": "provider_unavailable", "outcome": "ungraded"}, Exclusion.INFRASTRUCTURE),
        ({"outcome": "abstained", "score": None, "max_score": None}, Exclusion.ABSTAINED),
        ({"outcome": "ungraded", "score": None, "max_score": None}, Exclusion.UNGRADED),
        ({"score": 0.0, "max_score": 0.0}, Exclusion.NO_POINTS),
    ],
)
def test_each_reason_leaves_a_run_out(changes: dict[str, Any], why: Exclusion) -> None:
    assert counted(facts(**changes), Policies()) == Counted(None, why)


def test_the_first_reason_is_told() -> None:
    both = facts(flags=("control", "assisted"), outcome="invalidated")
    assert counted(both, Policies()).exclusion is Exclusion.CONTROL
    assert counted(facts(flags=("assisted",), ended_because="stopped"), Policies()).exclusion is Exclusion.ASSISTED


@pytest.mark.parametrize(("policy", "found"), [("as_graded", Counted(0.75)), ("zero", Counted(0.0))])
def test_nothing_delivered_counts_by_the_policy(policy: Any, found: Counted) -> None:
    run = facts(flags=("no_deliverable",))
    assert counted(run, Policies(no_deliverable=policy)) == found
    assert counted(run, Policies(no_deliverable="exclude")) == Counted(None, Exclusion.NO_DELIVERABLE)


def test_nothing_delivered_is_zero_even_where_graders_failed_but_not_where_we_did() -> None:
    zero = Policies(no_deliverable="zero", partial_after_limit="zero")
    ungraded: dict[str, Any] = {"flags": ("no_deliverable",), "outcome": "ungraded", "score": None, "max_score": None}
    assert counted(facts(**ungraded), zero) == Counted(0.0)
    for cause in INFRASTRUCTURE:
        assert counted(facts(**ungraded, ended_because=cause), zero).value is None


@pytest.mark.parametrize("cause", sorted(LIMITS))
def test_what_a_limit_cut_counts_by_the_policy(cause: str) -> None:
    run = facts(ended_because=cause, flags=("partial_output",))
    assert counted(run, Policies()) == Counted(0.75)
    assert counted(run, Policies(partial_after_limit="zero")) == Counted(0.0)
    assert counted(run, Policies(partial_after_limit="exclude")) == Counted(None, Exclusion.PARTIAL_AFTER_LIMIT)
    assert counted(facts(), Policies(partial_after_limit="zero")) == Counted(0.75)


_FACTS = st.builds(
    Facts,
    phase=st.sampled_from([*Phase]),
    outcome=st.sampled_from([None, *Outcome]),
    ended_because=st.sampled_from([None, *EndedBecause]),
    flags=st.lists(st.sampled_from([*Flag])),
    score=st.none() | st.floats(0, 10),
    max_score=st.none() | st.floats(0, 10),
)
_POLICIES = st.builds(
    Policies,
    no_deliverable=st.sampled_from(["zero", "exclude", "as_graded"]),
    partial_after_limit=st.sampled_from(["grade", "zero", "exclude"]),
)


@given(_FACTS, _POLICIES)
def test_a_run_counts_or_has_a_reason_and_no_failure_of_ours_is_a_score(run: Facts, policies: Policies) -> None:
    found = counted(run, policies)
    assert (found.value is None) != (found.exclusion is None)
    if run.ended_because in INFRASTRUCTURE or run.outcome in ("invalidated", "cancelled"):
        assert found.value is None

"""When an agent's runs look broken: windows at their edges, causes, what is not the agent's doing."""

import pytest

from service.domain.evaluations import StopRules
from service.domain.run_states import EndedBecause
from service.domain.stop_rules import Bad, Broken, EndedRun, decide, why_bad

RULES = StopRules()


def good(n: int = 1) -> list[EndedRun]:
    return [EndedRun(f"good{i}", EndedBecause.COMPLETED, 2, 500.0, 200) for i in range(n)]


def bad(n: int = 1, cause: EndedBecause = EndedBecause.SCAFFOLD_ERROR) -> list[EndedRun]:
    return [EndedRun(f"bad{i}", cause, 0, 500.0) for i in range(n)]


def said(ended: list[EndedRun], rules: StopRules = RULES) -> Broken | None:
    return decide(rules, ended[: rules.first], ended[-rules.last :])


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (EndedRun("r", EndedBecause.SCAFFOLD_ERROR, 3, 900.0), Bad.SCAFFOLD_ERROR),
        (EndedRun("r", EndedBecause.PROVISION_FAILED, 0, None), Bad.PROVISION_FAILED),
        (EndedRun("r", EndedBecause.COMPLETED, 0, 59.9), Bad.EMPTY),
        (EndedRun("r", EndedBecause.COMPLETED, 0, 60.0), None),
        (EndedRun("r", EndedBecause.COMPLETED, 1, 1.0), None),
        (EndedRun("r", EndedBecause.SANDBOX_LOST, 0, None), None),
        (EndedRun("r", EndedBecause.COMPLETED, 1, 900.0, 404), Bad.REFUSED),
        (EndedRun("r", EndedBecause.COMPLETED, 1, 900.0, 400), Bad.REFUSED),
        (EndedRun("r", EndedBecause.COMPLETED, 1, 900.0, 499), Bad.REFUSED),
        (EndedRun("r", EndedBecause.COMPLETED, 1, 900.0, 429), None),
        (EndedRun("r", EndedBecause.PROVIDER_UNAVAILABLE, 1, 900.0, 500), None),
        (EndedRun("r", EndedBecause.WALL_CLOCK, 1, 900.0, 200), None),
    ],
)
def test_what_counts_as_broken(run: EndedRun, why: Bad | None) -> None:
    assert why_bad(RULES, run) is why


def test_the_first_rule_speaks_as_soon_as_enough_were_bad() -> None:
    assert said(bad(4)) is None
    found = said(bad(5))
    assert found is not None
    assert (found.rule, found.bad, found.of, found.causes) == ("first", 5, 5, {"scaffold_error": 5})
    assert found.run_ids == ("bad4", "bad3", "bad2", "bad1", "bad0")
    assert found.detail == "5 of its first 5 ended runs look broken: 5 scaffold_error"


def test_the_first_rule_looks_at_no_more_than_its_window() -> None:
    assert said([*good(6), *bad(5)]) is None  # four of them are among the first ten
    found = said([*good(5), *bad(5)])
    assert found is not None
    assert (found.bad, found.of) == (5, 10)


def test_the_last_rule_waits_for_a_full_window() -> None:
    rules = StopRules(first_bad=1000)
    assert said([*bad(20), *good(29)], rules) is None
    found = said([*bad(20), *good(30)], rules)
    assert found is not None
    assert (found.rule, found.bad, found.of) == ("last", 20, 50)


def test_the_last_rule_at_its_share_and_below() -> None:
    assert said([*good(60), *bad(9)]) is None
    assert said([*good(60), *bad(10)]) is not None
    assert said([*bad(4), *good(50), *bad(6)]) is None  # what lies before the window is forgotten


def test_causes_are_counted_apart_most_first() -> None:
    found = said([*bad(2, EndedBecause.PROVISION_FAILED), *bad(3)])
    assert found is not None
    assert [*found.causes.items()] == [("scaffold_error", 3), ("provision_failed", 2)]


def test_rules_that_are_off_say_nothing() -> None:
    assert said(bad(50), StopRules(enabled=False)) is None


def test_no_run_no_rule() -> None:
    assert decide(RULES, [], []) is None

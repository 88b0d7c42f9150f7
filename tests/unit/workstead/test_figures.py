"""Figures over runs: the same as the service's own."""

from typing import Any

import pytest

from service.reporting import success as theirs
from tests.unit.workstead.fake_api import run_body
from workstead.cli.figures import by_agent, figures, wilson
from workstead.cli.tables import left_out, rate
from workstead.models import Run


def run(score: float | None, *, label: str = "a", most: float | None = 4, **changes: Any) -> Run:
    verdict = {"state": "graded", "score": score, "max_score": most}
    body: dict[str, Any] = {"phase": "done", "outcome": "graded", "ended_because": "completed", "verdict": verdict}
    return Run.model_validate({**run_body(), **body, "agent": {"id": "agt_1", "label": label}, **changes})


@pytest.mark.parametrize(("passed", "n"), [(0, 1), (1, 1), (3, 10), (10, 10), (0, 200), (7_020, 7_021)])
def test_the_interval_is_the_services(passed: int, n: int) -> None:
    assert wilson(passed, n) == theirs.wilson(passed, n)


def test_what_has_no_score_is_left_out_and_counted_never_zero() -> None:
    runs = [
        run(4), run(3), run(0), run(None, outcome="ungraded", ended_because="sandbox_lost"),
        run(None, outcome="cancelled", ended_because="stopped"), run(2, most=0), run(None, phase="running", outcome=None, ended_because=None),
    ]  # fmt: skip
    found = figures(runs)
    assert (found.n, found.graded, found.passed) == (7, 3, 1)
    assert found.mean == pytest.approx(7 / 12)
    assert found.pass_rate == pytest.approx(1 / 3)
    assert found.left_out == {
        "cancelled (stopped)": 1, "graded (completed)": 1, "running (not ended)": 1, "ungraded (sandbox_lost)": 1,
    }  # fmt: skip
    other = theirs.success(
        [theirs.Result(r.outcome, r.ended_because, r.verdict.score, r.verdict.max_score) for r in runs]
    )
    assert (other.n, other.graded, other.passed, other.pass_interval) == (found.n, 3, 1, found.interval)
    assert other.mean_fraction == found.mean


def test_nothing_graded_has_no_rate() -> None:
    found = figures([run(None, outcome="ungraded")])
    assert (found.pass_rate, found.interval, found.mean) == (None, None, None)
    assert rate(found) == "-"


def test_each_agent_has_its_own_denominator() -> None:
    groups = by_agent([run(4, label="b"), run(4, label="a"), run(None, label="a", outcome="ungraded")])
    assert {label: (own.passed, own.graded, own.n) for label, own in groups.items()} == {"a": (1, 1, 2), "b": (1, 1, 1)}
    assert list(groups) == ["a", "b"]
    assert left_out(groups["b"]) == "none"
    assert rate(groups["b"]) == "1.000 [0.207, 1.000]"

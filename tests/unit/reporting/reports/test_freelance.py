"""The Freelance report: its published rows through the whole way from tables, and its edge cases."""

import pytest

from service.domain.reports import ReportSettings
from service.reporting.reports.freelance import freelance
from tests.unit.reporting.reports.world import World, header, named, row

HISTOGRAMS = {"GPT-4o-mini": (862, 212, 36, 5, 0), "Mistral": (474, 419, 175, 41, 6)}


def published() -> World:
    w = World()
    for n in range(1115):
        w.task(f"t{n:04}", price_usd=100.0)
    for agent, histogram in HISTOGRAMS.items():
        w.agent(agent)
        wrong = [k for k, times in enumerate(histogram) for _ in range(times)]
        for n, k in enumerate(wrong):
            run = w.run(agent, f"t{n:04}", (4 - k) / 4, most=4)
            w.verdict(run, [(f"test-{i}", i >= k, 1.0) for i in range(4)], method="test_cases")
    return w


def test_published_rows_come_out_of_tables() -> None:
    tables = freelance(published().tables(), header(), ReportSettings())
    results, tests = named(tables, "freelance_results"), named(tables, "freelance_tests")
    mini, mistral = row(results, agent="GPT-4o-mini"), row(results, agent="Mistral")
    assert (mini["attempted"], mini["solved"], round(100 * mini["test_accuracy"], 1)) == (1115, 862, 93.3)
    assert (mini["earned_usd"], mistral["earned_usd"]) == (86_200, 47_400)
    assert mini["success_rate_low"] < 862 / 1115 < mini["success_rate_high"]
    assert (row(tests, agent="Mistral")["correct"], row(tests, agent="Mistral")["incorrect"]) == (3544, 916)
    wrong = named(tables, "wrong_histogram")
    assert tuple(r["runs"] for r in wrong.rows if r["agent"] == "Mistral") == HISTOGRAMS["Mistral"]
    assert results.n == 2230
    curve = [r for r in named(tables, "cumulative_value").rows if r["agent"] == "GPT-4o-mini"]
    assert (len(curve), curve[-1]["earned_usd"], curve[-1]["done"]) == (200, 86_200, 1115)


def small() -> World:
    w = World()
    w.agent("a")
    for name, price in (("t1", 200.0), ("t2", None), ("t3", 50.0), ("t4", 10.0)):
        w.task(name, price_usd=price)
    w.verdict(
        w.run("a", "t1", 1.0, most=2), [("1", True, 1), ("2", True, 1)], method="test_cases", detail={"certified": True}
    )
    w.verdict(w.run("a", "t2", 1.0, most=2), [("1", True, 1), ("2", True, 1)], method="test_cases")
    grading = w.verdict(
        w.run("a", "t3", 0.5, most=2),
        [("1", True, 1), ("2", False, 1)],
        method="test_cases",
        detail={"certified": True},
    )
    w.rows["criteria"][-1] |= {"detail": '{"cause": "timeout"}', "grading_id": grading}
    return w


def test_money_of_unpriced_tasks_is_nowhere_and_counted() -> None:
    tables = freelance(small().tables(), header(), ReportSettings())
    money = named(tables, "earnings").rows[0]
    assert (money["earned_usd"], money["possible_usd"], money["unpriced"], money["solved_unpriced"]) == (200, 250, 1, 1)
    result = named(tables, "freelance_results").rows[0]
    assert (result["solved"], result["certified"], result["with_passing_score"], result["unpriced"]) == (2, 2, 2, 1)


def test_causes_of_wrong_tests() -> None:
    table = named(freelance(small().tables(), header(), ReportSettings()), "failure_causes")
    assert table.rows == [{"agent": "a", "cause": "timeout", "items": 1, "share": 1.0}]


def test_nothing_delivered_is_all_tests_wrong_where_others_know_how_many() -> None:
    w = small()
    w.agent("b")
    w.run("b", "t1", 0.0, max_score=None, score=None, fraction=None, flags=["no_deliverable"])
    w.run("b", "t4", 0.0, max_score=None, score=None, fraction=None, flags=["no_deliverable"])
    tables = freelance(w.tables(), header(), ReportSettings())
    b = row(named(tables, "freelance_results"), agent="b")
    assert (b["attempted"], b["solved"], b["test_accuracy"]) == (1, 0, 0.0)
    assert named(tables, "freelance_results").excluded == {"without tests": 1}


def test_what_a_policy_makes_zero_has_no_right_test() -> None:
    w = small()
    w.rows["runs"][0]["counted"] = 0.0
    result = named(freelance(w.tables(), header(), ReportSettings()), "freelance_results").rows[0]
    assert (result["solved"], result["test_accuracy"]) == (1, pytest.approx(3 / 6))


def test_samples_of_a_task_share_its_price() -> None:
    w = small()
    w.verdict(w.run("a", "t1", 0.0, most=2, sample=2), [("1", False, 1), ("2", False, 1)], method="test_cases")
    assert named(freelance(w.tables(), header(), ReportSettings()), "earnings").rows[0]["earned_usd"] == pytest.approx(
        100
    )

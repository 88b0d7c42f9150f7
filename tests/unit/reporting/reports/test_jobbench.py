"""JobBench's report on small tables worked out by hand."""

import pytest

from service.domain.benchmarks import Grouping, Policies
from service.domain.errors import Invalid
from service.domain.reports import ReportSettings
from service.reporting.reports.jobbench import jobbench
from service.reporting.reports.leaderboard import jobbench_leaderboard
from tests.unit.reporting.reports.world import World, header, named, row

BY_CATEGORY = Grouping(name="category", facet="category", merges={"Others": ["Legal", "Sales"]})


def office() -> World:
    """Two agents on four tasks. ``a`` has 10/10, 45/90, 0/20 and 5/10; ``b`` lacks the last and was not graded on the third."""
    w = World()
    w.agent("a", scaffold="cc", model="m1")
    w.agent("b", scaffold="oc", model="m1")
    for name, category in (("t1", "Admin"), ("t2", "Admin"), ("t3", "Legal"), ("t4", "Sales")):
        w.task(
            name, {"category": category, "occupation": category.lower(), "split": "easy" if name == "t1" else "main"}
        )
    for task, counted, most in (("t1", 1.0, 10), ("t2", 0.5, 90), ("t3", 0.0, 20), ("t4", 0.5, 10)):
        run = w.run("a", task, counted, most=most, cost_usd=0.5, cost_basis="measured", wall_s=60.0)
        w.verdict(
            run,
            [
                ("r1", counted == 1, most / 2),
                ("r1.c1", counted > 0, 0),
                ("r2", counted > 0, most / 2),
                ("r2.c1", counted > 0, 0),
            ],
        )
    w.verdict(
        w.run("b", "t1", 0.5, most=10, cost_usd=2.0, wall_s=30.0),
        [("r1", True, 5), ("r1.c1", True, 0), ("r2", False, 5), ("r2.c1", False, 0)],
    )
    w.verdict(
        w.run("b", "t2", 1.0, most=90, cost_usd=2.0, wall_s=30.0),
        [("r1", True, 45), ("r1.c1", True, 0), ("r2", True, 45), ("r2.c1", True, 0)],
    )
    w.run("b", "t3", None, wall_s=1.0)
    return w


def test_scores_by_hand() -> None:
    table = named(jobbench(office().tables(), header(groupings=[BY_CATEGORY]), ReportSettings()), "jobbench_scores")
    a, b = row(table, agent="a"), row(table, agent="b")
    assert (a["macro"], a["micro"], a["rubric_pass_rate"]) == pytest.approx((0.5, 60 / 130, 4 / 8))
    assert (a["tasks"], a["missing"]) == (4, 0)
    assert a["macro_low"] < 0.5 < a["macro_high"]
    assert (b["tasks"], b["missing"]) == (3, 1)
    assert (b["macro"], b["micro"], b["rubric_pass_rate"]) == pytest.approx((1.5 / 3, 95 / 110, 3 / 6))
    assert [c.title for c in table.columns[-2:]] == ["Admin (2)", "Others (2)"]
    assert (a["group_1_admin"], a["group_2_others"], b["group_2_others"]) == pytest.approx((0.75, 0.25, 0.0))
    assert (table.n, table.excluded) == (6, {"ungraded": 1})
    assert table.settings["missing"] == "zero"


def test_a_run_that_nobody_could_grade_is_no_zero_and_no_missing_task() -> None:
    """``t3`` of ``b`` failed on our side; under ``zero`` only ``t4``, which it never tried, counts 0."""
    settings = ReportSettings(missing="exclude")
    table = named(jobbench(office().tables(), header(), settings), "jobbench_scores")
    assert row(table, agent="b")["macro"] == pytest.approx(0.75)
    refused = named(jobbench(office().tables(), header(), ReportSettings(missing="refuse")), "jobbench_scores")
    assert row(refused, agent="b")["macro"] is None
    assert row(refused, agent="b")["macro_low"] is None
    assert row(refused, agent="a")["macro"] == pytest.approx(0.5)
    assert any("b" in note for note in refused.notes)


def test_what_a_policy_makes_zero_passes_no_rubric() -> None:
    w = office()
    cut = w.run("b", "t4", 0.0, most=10, fraction=0.5)
    w.verdict(cut, [("r1", True, 5), ("r2", False, 5)])
    b = row(named(jobbench(w.tables(), header(), ReportSettings()), "jobbench_scores"), agent="b")
    assert b["rubric_pass_rate"] == pytest.approx(3 / 6)
    assert b["micro"] == pytest.approx(95 / 110)


def test_only_the_last_primary_round_of_the_own_plan_counts() -> None:
    w = office()
    first = w.rows["runs"][0]["run_id"]
    w.verdict(first, [("r1", False, 5), ("r2", False, 5)], round=2)
    w.verdict(first, [("r1", True, 5), ("r2", True, 5)], round=3, primary=False)
    w.verdict(first, [("r1", True, 5), ("r2", True, 5)], round=4, plan="other@1")
    w.verdict(first, [("r1", True, 5), ("r2", True, 5)], round=5, state="failed", score=None, max_score=None)
    a = row(named(jobbench(w.tables(), header(), ReportSettings()), "jobbench_scores"), agent="a")
    assert a["rubric_pass_rate"] == pytest.approx(2 / 8)


def test_union_of_runs_is_over_criteria_and_not_over_rubrics() -> None:
    table = named(jobbench(office().tables(), header(), ReportSettings()), "union_pass_rate")
    assert table.rows == [{"criteria": 8, "passed": 6, "rate": 0.75}]


def test_leaderboard_is_in_the_layout_of_its_site() -> None:
    settings = ReportSettings(options={"aggregate": "micro"})
    found = jobbench_leaderboard(office().tables(), header(notice="Terms"), settings).model_dump()
    assert (found["totalTasks"], found["totalModels"], found["totalRubrics"], found["totalCriteria"]) == (4, 1, 8, 8)
    assert found["notice"] == "Terms"
    first, second = found["leaderboard"]
    assert (first["displayName"], first["rank"], first["overallScore"]) == ("b", 1, 86.36)
    assert (second["rank"], second["overallScore"], second["totalScore"], second["maxScore"]) == (2, 46.15, 60.0, 130)
    assert second["categoryBreakdown"]["admin"] == {
        "score": 55.0, "max_score": 100, "score_pct": 55.0, "tasks_evaluated": 2, "rubrics_passed": 3, "rubrics_total": 4,
    }  # fmt: skip
    by_mean = jobbench_leaderboard(office().tables(), header(), ReportSettings()).model_dump()["leaderboard"]
    assert [(r["overallScore"], r["rank"]) for r in by_mean] == [(50.0, 1), (50.0, 1)]


def test_two_judges_side_by_side() -> None:
    w = office()
    for n, run in enumerate([r for r in w.rows["runs"] if r["counted"] is not None]):
        passed = n % 2 == 0
        rows = [("r1", passed, 5.0), ("r1.c1", passed, 0.0), ("r2", True, 5.0), ("r2.c1", True, 0.0)]
        w.verdict(run["run_id"], rows, plan="second@1", cost_usd=0.25)
    settings = ReportSettings(plans_beside=["second"])
    table = named(jobbench(w.tables(), header(), settings), "judge_comparison_1")
    everybody, b = row(table, agent="all agents"), row(table, agent="b")
    assert (everybody["runs"], everybody["criteria"], table.excluded) == (6, 12, {"ungraded": 1})
    assert (b["before"], b["beside"], b["difference"]) == pytest.approx((0.75, 0.75, 0.0))
    assert (b["agreement"], b["kappa"], b["criteria_agreement"]) == (0.0, -1.0, 0.5)
    assert (b["cost_usd"], b["cost_beside_usd"]) == (None, pytest.approx(0.5))


def test_costs_efforts_and_scaffolds() -> None:
    w = office()
    w.agent("c", scaffold="cc", model="m1", effort="low")
    w.run("c", "t1", 0.25, cost_usd=None)
    tables = jobbench(w.tables(), header(), ReportSettings())
    costs = named(tables, "cost_against_score")
    assert (row(costs, agent="a")["cost_usd"], row(costs, agent="a")["frontier"]) == (2.0, True)
    assert (row(costs, agent="c")["cost_usd"], row(costs, agent="c")["unknown"]) == (None, 1)
    assert [r["effort"] for r in named(tables, "effort_sweep").rows] == ["low", "default"]
    deltas = named(tables, "scaffold_deltas")
    assert [(r["first"], r["second"], r["tasks"]) for r in deltas.rows] == [("a", "b", 2)]
    assert deltas.rows[0]["difference"] == pytest.approx(0.0)


def test_complexity_by_split_and_against_a_reference() -> None:
    w = office()
    w.run("a", "t1", 1.0, evaluation_id="eval_ref", wall_s=20.0)
    table = named(
        jobbench(w.tables(), header(), ReportSettings(options={"reference_evaluation": "eval_ref"})), "complexity"
    )
    assert (row(table, agent="a", split="all")["wall_s"], row(table, agent="a", split="all")["wall_s_ratio"]) == (
        60.0,
        3.0,
    )
    assert row(table, agent="b", split="easy")["runs"] == 1


def test_one_agent_per_model_by_a_rule_that_is_printed() -> None:
    rule = {"best_scaffold": {"rule": "split", "facet": "split", "value": "easy"}}
    table = named(jobbench(office().tables(), header(), ReportSettings(options=rule)), "main_table")
    assert [r["agent"] for r in table.rows] == ["a"]
    assert (table.n, table.excluded) == (3, {"another scaffold is better there": 1})
    assert "split = easy" in table.method
    by_vendor = {"best_scaffold": {"rule": "vendor", "scaffolds": {"v": "oc"}}}
    chosen = named(jobbench(office().tables(), header(), ReportSettings(options=by_vendor)), "main_table")
    assert [r["agent"] for r in chosen.rows] == ["b"]


def test_scores_beside_a_readers_own_figures() -> None:
    options = {"covariates": "occupation,desire\nadmin,1\nlegal,2\nsales,3\nnobody,4\n"}
    table = named(jobbench(office().tables(), header(), ReportSettings(options=options)), "covariate")
    assert [(r["group"], r["quadrant"]) for r in table.rows] == [
        ("admin", "high/low"),
        ("legal", "low/high"),
        ("sales", "high/high"),
    ]
    assert table.excluded == {"no score": 1}


@pytest.mark.parametrize(
    ("options", "type_"),
    [
        ({"unheard_of": 1}, "invalid_option"),
        ({"aggregate": "best"}, "invalid_option"),
        ({"covariates": "g,v\na,x\n"}, "invalid_option"),
        ({"best_scaffold": {"rule": "best"}}, "invalid_option"),
        ({"best_scaffold": {"rule": "split"}}, "invalid_option"),
        ({"best_scaffold": {"rule": "split", "facet": "split", "value": "?"}}, "invalid_option"),
        ({"best_scaffold": {"rule": "list", "agents": ["nobody"]}}, "unknown_agent"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], type_: str) -> None:
    with pytest.raises(Invalid) as caught:
        jobbench(office().tables(), header(), ReportSettings(options=options))
    assert caught.value.type == type_


def test_a_grouping_that_is_unknown_is_refused() -> None:
    with pytest.raises(Invalid, match="category"):
        jobbench(office().tables(), header(groupings=[BY_CATEGORY]), ReportSettings(grouping="x"))


def test_an_empty_evaluation_has_tables_and_no_figures() -> None:
    tables = jobbench(World().tables(), header(Policies(missing="zero")), ReportSettings())
    assert all(t.n == 0 for t in tables)
    assert named(tables, "union_pass_rate").rows[0]["rate"] is None

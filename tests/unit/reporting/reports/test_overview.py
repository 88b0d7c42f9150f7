"""What every report has: results, validity, comparisons, and reports by their kinds."""

import json
from typing import cast

import pytest

from service.domain.benchmarks import Policies
from service.domain.errors import Invalid
from service.domain.reports import ReportSettings
from service.reporting.reports.comparison import comparison
from service.reporting.reports.overview import overview
from service.reporting.reports.registry import Kind, build
from service.reporting.reports.validity import validity
from tests.unit.reporting.reports.world import World, header, named, row


def pair() -> World:
    w = World()
    w.agent("a")
    w.agent("b")
    for n in range(6):
        w.task(f"t{n}", status="disputed" if n == 5 else "ok", check="suspect" if n == 0 else None)
        w.run("a", f"t{n}", 1.0 if n < 3 else 0.5)
        w.run("b", f"t{n}", 0.5 if n < 5 else 1.0)
    return w


def test_results_by_hand() -> None:
    table = named(overview(pair().tables(), header(seed=3), ReportSettings()), "results")
    a = row(table, agent="a")
    assert (a["runs"], a["counted"], a["score"], a["solved"], a["solved_rate"]) == (6, 6, 0.75, 3, 0.5)
    assert (a["solved_rate_low"], a["solved_rate_high"]) == pytest.approx((0.1876, 0.8124), abs=1e-4)
    assert (table.settings["seed"], table.settings["draws"]) == (3, 1000)


def test_what_a_reader_leaves_out_is_counted() -> None:
    w = pair()
    w.rows["runs"][0]["flags"] = '["contamination_suspected"]'
    settings = ReportSettings(contaminated="exclude", disputed="exclude")
    table = named(overview(w.tables(), header(), settings), "results")
    assert table.excluded == {"contaminated": 1, "disputed": 2}
    assert (table.n, row(table, agent="a")["counted"]) == (9, 4)
    assert named(overview(w.tables(), header(), ReportSettings()), "results").n == 12


def test_the_same_seed_gives_the_same_report_and_another_one_other_intervals() -> None:
    tables = pair().tables()
    once, again = (overview(tables, header(seed=1), ReportSettings()) for _ in range(2))
    assert once == again
    other = overview(tables, header(seed=1), ReportSettings(seed=2))
    cells = [row(named(t, "results"), agent="a")["score_low"] for t in (once, other)]
    assert named(other, "results").settings["seed"] == 2
    assert [row(named(t, "results"), agent="a")["score"] for t in (once, other)] == [0.75, 0.75]
    assert all(cell is not None for cell in cells)


def test_the_order_of_rows_changes_nothing() -> None:
    w = pair()
    once = overview(w.tables(), header(), ReportSettings())
    for rows in w.rows.values():
        rows.reverse()
    assert overview(w.tables(), header(), ReportSettings()) == once


def test_several_samples_bring_pass_at_k() -> None:
    w = pair()
    assert not [t for t in overview(w.tables(), header(), ReportSettings()) if t.name == "pass_at_k"]
    w.run("a", "t3", 1.0, sample=2)
    table = named(overview(w.tables(), header(), ReportSettings()), "pass_at_k")
    assert row(table, agent="a", k=2) == {"agent": "a", "k": 2, "tasks": 1, "any": 1.0, "all": 0.0}


def test_controls_are_nobodys_work() -> None:
    w = pair()
    w.run("a", "t0", None, exclusion="control", flags=["control"])
    w.run("a", "t0", None, exclusion="stopped")
    table = named(overview(w.tables(), header(), ReportSettings()), "exclusions")
    assert (table.n, table.rows) == (13, [{"agent": "a", "exclusion": "stopped", "runs": 1}])


def test_against_a_reference_agent() -> None:
    table = named(overview(pair().tables(), header(), ReportSettings(reference_agent="a")), "against_reference")
    b = row(table, agent="b")
    assert (b["tasks"], b["difference"], b["better"], b["worse"]) == (6, pytest.approx(-1 / 6), 1, 3)
    assert b["sign_p"] == pytest.approx(10 / 16)
    with pytest.raises(Invalid) as caught:
        overview(pair().tables(), header(), ReportSettings(reference_agent="nobody"))
    assert caught.value.type == "unknown_agent"


def test_two_evaluations_are_paired_by_task() -> None:
    w = pair()
    for n in range(5):
        w.run("a", f"t{n}", 1.0, evaluation_id="eval_2")
    tables = comparison(w.tables(), header(evaluations=["eval_1", "eval_2"]), ReportSettings())
    table = named(tables, "comparison")
    (a,) = table.rows
    assert (a["agent"], a["tasks"], a["before"], a["after"]) == ("a", 5, pytest.approx(0.8), 1.0)
    assert (a["better"], a["worse"], a["sign_p"], a["permutation_p"]) == (2, 0, 0.5, 0.5)
    assert "b" in table.notes[0]
    assert [r["task"] for r in named(tables, "changed_tasks").rows] == ["t3", "t4"]
    with pytest.raises(Invalid, match="two evaluations"):
        comparison(w.tables(), header(), ReportSettings())


def lines(w: World) -> dict[str, tuple[int, int, bool]]:
    found = validity(w.tables(), header(), ReportSettings())
    return {line.name: (line.count, line.of, line.warning) for line in found}


def test_flags_are_counted_also_where_there_are_none() -> None:
    w = pair()
    w.rows["runs"][1]["flags"] = json.dumps(["contamination_suspected", "overridden"])
    found = lines(w)
    assert found["contamination_suspected"] == (1, 12, True)
    assert found["overridden"] == (1, 12, False)
    assert found["provider_tools_used"] == (0, 12, False)
    assert found["suspect_tasks"] == (1, 6, True)
    assert found["disputed_tasks"] == (1, 6, True)
    assert found["unchecked_tasks"] == (5, 6, False)


def test_limits_warn_above_two_percent_of_an_agents_runs() -> None:
    w = World()
    w.agent("a")
    for n in range(100):
        w.task(f"t{n}")
        w.run("a", f"t{n}", 1.0, ended_because="memory_limit" if n < 2 else "completed")
    assert lines(w)["limits_hit"] == (2, 100, False)
    w.rows["runs"][5]["ended_because"] = "output_limit"
    assert lines(w)["limits_hit"] == (3, 100, True)


def test_an_alias_that_answers_under_two_ids_has_drifted() -> None:
    w = pair()
    for n, reported in enumerate(("m-1", "m-1", "m-2", None)):
        w.add("model_requests", request_id=f"q{n}", run_id="run_00000", model="m", reported_model=reported)
    w.add("model_requests", request_id="q9", run_id="run_00000", model="other", reported_model="x")
    line = next(x for x in validity(w.tables(), header(), ReportSettings()) if x.name == "alias_drift")
    assert (line.count, line.of, line.by_agent, line.warning) == (1, 2, {"m": 2}, True)


def test_judges_that_contradict_themselves_are_a_warning() -> None:
    w = pair()
    assert "judge_agreement" not in lines(w)
    for n, passed in enumerate((True, True, False)):
        w.add("votes", grading_id="g", item="r1", judge="j", n=n, state="valid", content={"rubric_passed": passed})
    w.add("votes", grading_id="g", item="r1", judge="j", n=4, state="invalid", cause="schema")
    found = lines(w)
    assert found["invalid_votes"] == (1, 4, False)
    assert found["judge_agreement"] == (1, 3, True)


@pytest.mark.parametrize("kind", ["overview", "jobbench", "rli", "freelance"])
def test_reports_by_kind_are_json(kind: str) -> None:
    report = build(cast("Kind", kind), pair().tables(), header(Policies()), ReportSettings())
    assert (report.kind, report.validity != [], report.tables != []) == (kind, True, True)
    text = report.model_dump_json()
    assert "NaN" not in text
    assert "Infinity" not in text
    for table in report.tables:
        names = {c.name for c in table.columns}
        names |= {f"{c.interval}_{end}" for c in table.columns if c.interval for end in ("low", "high")}
        assert all(set(cells) == names for cells in table.rows), table.name
        if table.plot:
            assert {v for k, v in table.plot.items() if k in {"x", "y", "color"}} <= names, table.name


def test_an_unknown_kind_and_unknown_options_are_refused() -> None:
    with pytest.raises(Invalid) as caught:
        build(cast("Kind", "nonsense"), pair().tables(), header(), ReportSettings())
    assert caught.value.type == "unknown_report"
    for kind in ("overview", "freelance", "rli"):
        with pytest.raises(Invalid) as caught:
            build(cast("Kind", kind), pair().tables(), header(), ReportSettings(options={"x": 1}))
        assert caught.value.type == "invalid_option"

"""RLI's report: rates, Elo out of ratings and preferences, autoflation, and what raters say."""

import pytest

from service.domain.reports import ReportSettings
from service.reporting.reports.rli import rli
from tests.unit.reporting.reports.studio import prefer, rate, studio
from tests.unit.reporting.reports.world import header, named, row


def test_rates_by_hand() -> None:
    table = named(rli(studio().tables(), header(), ReportSettings()), "automation_rate")
    a, b = row(table, agent="A"), row(table, agent="B")
    assert (a["projects"], a["accepted"], a["rate"], a["no_deliverable"]) == (4, 1, 0.25, 0)
    assert (b["projects"], b["accepted"], b["rate"], b["no_deliverable"]) == (4, 0, 0.0, 1)


def test_elo_needs_no_pairs_between_agents() -> None:
    """A's project of ratings 3 and 2 has no majority: half a win; the others are the human's. B was judged by nobody."""
    tables = rli(studio().tables(), header(), ReportSettings())
    edges = {(r["first"], r["second"]): (r["preference"], r["projects"]) for r in named(tables, "rli_elo_edges").rows}
    assert edges == {("A", "human"): (pytest.approx(0.5 / 4), 4), ("B", "human"): (0.0, 4)}
    table = named(tables, "rli_elo")
    assert [r["agent"] for r in table.rows] == ["human", "A", "B"]
    assert (row(table, agent="human")["elo"], row(table, agent="human")["elo_low"]) == (1000, None)
    assert table.settings["draws"] == 100
    assert table.settings["smoothing"] == 0.1
    assert table.settings["human_edge_coding"] == "majority"


@pytest.mark.parametrize(("coding", "value"), [("majority", 0.125), ("mean", 0.75 / 4), ("accept", 0.25)])
def test_human_edges_are_coded_as_said(coding: str, value: float) -> None:
    settings = ReportSettings(options={"human_edge_coding": coding})
    edges = named(rli(studio().tables(), header(), settings), "rli_elo_edges")
    assert row(edges, first="A")["preference"] == pytest.approx(value)


def test_preferences_of_people_judges_and_against_the_reference() -> None:
    w = studio()
    prefer(w, "p1", 1.0)
    prefer(w, "p2", 0.5)
    prefer(w, "p3", 0.0, source="judges")
    prefer(w, "p1", 0.5, second=None, source="judges")
    people = rli(w.tables(), header(), ReportSettings())
    assert row(named(people, "rli_elo_edges"), first="A", second="B")["preference"] == 0.75
    assert sum(named(people, "rli_elo").excluded.values()) == 2
    judges = ReportSettings(options={"preferences": "judges", "human_edges": "preferences"})
    edges = {
        (r["first"], r["second"]): r["preference"]
        for r in named(rli(w.tables(), header(), judges), "rli_elo_edges").rows
    }
    assert edges == {("A", "B"): 0.0, ("A", "human"): 0.5}


def test_works_of_excluded_runs_take_no_part_in_elo() -> None:
    w = studio()
    prefer(w, "p1", 1.0)
    w.rows["runs"][0] |= {"counted": None, "exclusion": "invalidated"}
    table = named(rli(w.tables(), header(), ReportSettings()), "rli_elo")
    assert table.excluded == {"a run that does not count": 1, "runs: invalidated": 1}


def test_who_was_never_compared_is_named_and_has_no_figure() -> None:
    w = studio()
    prefer(w, "p1", 1.0)
    table = named(rli(w.tables(), header(), ReportSettings(options={"human_edges": "none"})), "rli_elo")
    assert table.rows == []
    assert "A, B" in table.notes[0]
    assert "human" in table.notes[0]


def test_autoflation_and_declared_costs() -> None:
    w = studio()
    table = named(rli(w.tables(), header(), ReportSettings()), "autoflation")
    assert table.rows == [
        {"on": "2026-02-01", "autoflation": pytest.approx(197 / 1250), "reduction_usd": 197.0, "projects": 1}
    ]
    assert (table.n, table.excluded) == (1, {"projects without a price": 1})
    w.rows["runs"][0]["cost_basis"] = "declared"
    assert named(rli(w.tables(), header(), ReportSettings()), "autoflation").rows == []
    assert named(rli(w.tables(), header(), ReportSettings(declared_costs=True)), "autoflation").rows != []


def test_dollars_and_the_price_of_hours() -> None:
    tables = rli(studio().tables(), header(), ReportSettings())
    assert row(named(tables, "dollars_earned"), agent="A")["earned_usd"] == 200
    hours = named(tables, "price_and_time")
    assert (hours.n, hours.excluded) == (3, {"price or time not known": 1})
    assert hours.settings["pearson_log"] == pytest.approx(1.0)


def test_tags_times_and_agreement() -> None:
    w = studio()
    run = w.rows["runs"][0]["run_id"]
    rate(w, run, "r3", 2, purpose="second_pass", active_s=1500.0)
    rate(w, run, "r4", 1, purpose="gold", active_s=9000.0)
    tables = rli(w.tables(), header(), ReportSettings())
    assert row(named(tables, "failure_tags"), agent="A")["share"] == 1.0
    times = named(tables, "evaluation_times")
    assert (times.n, times.rows[0]["over"]) == (9, pytest.approx(1 / 9))
    agreement = named(tables, "rater_agreement")
    completion, second = row(agreement, measure="completion"), row(agreement, measure="second_pass")
    assert (completion["items"], completion["agreement"]) == (4, 1.0)
    assert completion["chance"] == pytest.approx(0.25**2 + 0.75**2)
    assert (second["agreement"], second["bound"]) == (1.0, pytest.approx(0.95))
    histogram = named(tables, "evaluation_time_histogram")
    assert [(r["from_s"], r["ratings"]) for r in histogram.rows][-1] == (1500, 1)


def test_the_best_scaffold_is_shown_beside_all_of_them() -> None:
    rule = {"best_scaffold": {"rule": "list", "agents": ["B"]}}
    tables = rli(studio().tables(), header(), ReportSettings(options=rule))
    assert [r["agent"] for r in named(tables, "main_table").rows] == ["B"]
    assert named(tables, "main_table").excluded == {"not named": 1}
    assert len(named(tables, "automation_rate").rows) == 2

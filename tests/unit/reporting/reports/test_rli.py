"""RLI's report: rates, Elo out of ratings and preferences, autoflation, and what raters say."""

from datetime import date

import pytest

from service.domain.reports import ReportSettings
from service.reporting.reports.rli import rli
from tests.unit.reporting.reports.world import World, header, named, row


def studio() -> World:
    """Two agents on four projects; ``a`` has one accepted, ``b`` delivered nothing on one."""
    w = World()
    w.agent("agent_a", label="A", released_on=date(2026, 2, 1))
    w.agent("agent_b", label="B", released_on=None)
    for n, price in enumerate((200.0, 1000.0, 50.0, None), 1):
        w.task(f"p{n}", price_usd=price, human_time_s=None if price is None else price * 36)
    for n in range(1, 5):
        run = w.run("agent_a", f"p{n}", 1.0 if n == 1 else 0.0, cost_usd=3.0, cost_basis="measured")
        for rater, rating in (("r1", 3 if n == 1 else 1), ("r2", 2 if n == 1 else 1)):
            rate(w, run, rater, rating)
        w.run("agent_b", f"p{n}", 0.0, flags=["no_deliverable"] if n == 4 else [])
    return w


def rate(w: World, run: str, rater: str, rating: int, **values: object) -> None:
    n = len(w.rows["ratings"])
    tags = [] if rating > 1 else ["incomplete"]
    plain = {"form": "human_panel", "item_id": f"item_{run}", "purpose": "rating", "active_s": 600.0 + n, "tags": tags}
    w.add(
        "ratings", rating_id=f"rt_{n:04}", run_id=run, rater=rater, rating=rating, accept=rating > 1, **(plain | values)
    )


def prefer(
    w: World, task: str, value: float, first: str = "agent_a", second: str | None = "agent_b", **values: object
) -> None:
    runs = {(r["agent_id"], r["task_id"]): r["run_id"] for r in w.rows["runs"]}
    plain = {
        "preference_id": f"pref_{len(w.rows['preferences']):04}",
        "source": "people",
        "task_id": task,
        "first_run_id": runs[first, task],
        "second_run_id": None if second is None else runs[second, task],
    }
    w.add("preferences", first_agent_id=first, second_agent_id=second, value=value, **(plain | values))


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

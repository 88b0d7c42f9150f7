"""Two programs that share no code make the same figures of the same tables; a figure that is changed is found."""

import json
import random
from datetime import date
from typing import Any, cast

import pytest

from service.domain.benchmarks import Grouping
from service.domain.reports import Report, ReportSettings
from service.lifecycle.handover.verify_program import labor
from service.lifecycle.handover.verify_program.comparing import FORMULAS, compare, same
from service.lifecycle.handover.verify_program.reading import Data
from service.reporting.dictionary import TABLES, Type
from service.reporting.reports.registry import Kind, build
from tests.unit.reporting.reports.studio import prefer, rate, studio
from tests.unit.reporting.reports.world import World, header

BY_OCCUPATION = Grouping(name="occupation", facet="occupation", merges={"Others": ["o1", "o2"]})


def read(world: World) -> dict[str, list[dict[str, Any]]]:
    """Return the rows as the verifier reads them from CSV files."""
    kinds = {name: {c.name: c.type for c in table.columns} for name, table in TABLES.items()}
    return {
        name: [{k: _read(v, kinds[name][k]) for k, v in row.items()} for row in rows]
        for name, rows in world.rows.items()
    }


def _read(value: Any, kind: Type) -> Any:
    if isinstance(value, date) and kind is Type.DATE:
        return value.isoformat()
    return json.loads(str(value)) if kind is Type.JSON and value is not None else value


def differences(world: World, report: Report) -> tuple[list[str], set[str]]:
    """Return what differs, and the tables that were looked at."""
    said = report.model_dump(mode="json")
    x = Data(read(world), said)
    found: list[str] = []
    seen: set[str] = set()
    for table in said["tables"]:
        if table["name"] in FORMULAS:
            seen.add(table["name"])
            formula, key = FORMULAS[table["name"]]
            found += [cell for cell, old, new in compare(table, formula(x, table), key) if not same(old, new)]
    return found, seen


def labor_index(seed: int) -> World:
    """The studio, with preferences, ratings of all purposes, and a run that does not count."""
    drawn = random.Random(seed)
    world = studio()
    for n in range(1, 5):
        prefer(world, f"p{n}", drawn.choice([0.0, 0.5, 1.0]))
        prefer(world, f"p{n}", 0.5, second=None, source="judges")
        run = world.rows["runs"][2 * (n - 1)]["run_id"]
        for purpose in ("second_pass", "audit", "gold"):
            rate(world, run, purpose, drawn.choice([1, 2, 3]), purpose=purpose, active_s=drawn.random() * 4000)
        for rater in ("x", "y"):
            sides = {side: drawn.choice(["first", "same", "second"]) for side in ("completion", "quality")}
            plain = {"form": "pairwise", "item_id": f"pair_{n}", "purpose": "rating", "active_s": 100.0 * n, **sides}
            world.add("ratings", rating_id=f"rp_{n}_{rater}", run_id=run, rater=rater, tags=[], **plain)
    world.rows["runs"][5] |= {"counted": None, "exclusion": "stopped"}
    return world


def office(seed: int) -> World:
    """Agents that differ in scaffold and effort, several samples, rubrics and tests, prices that are not known."""
    drawn = random.Random(seed)
    world = World()
    for n in range(4):
        world.agent(f"agent {n}", scaffold=f"s{n % 2}", effort=("low", "high")[n // 2])
    for n in range(9):
        facets = {"occupation": f"o{n % 4}", "split": f"s{n % 2}"}
        world.task(f"t{n}", facets, price_usd=None if n == 3 else 10.0 * n, status="disputed" if n == 8 else "ok")
    for agent in range(4):
        for task in range(9 if agent else 7):
            for sample in (1, 2) if task < 2 else (1,):
                passed = [drawn.random() < 0.6 for _ in range(3)]
                counted = None if drawn.random() < 0.1 else sum(passed) / 3
                cost = None if (agent, task) == (2, 2) else drawn.random()
                run = world.run(
                    f"agent {agent}", f"t{task}", counted, most=30, sample=sample, cost_usd=cost, wall_s=60.0
                )
                if counted is not None:
                    rows = [(f"r{r}", ok, 10.0) for r, ok in enumerate(passed, 1)]
                    rows += [(f"r{r}.c1", ok, 0.0) for r, ok in enumerate(passed, 1)]
                    world.verdict(run, rows, method="test_cases" if seed % 2 else "rubric_chain")
    return world


@pytest.mark.parametrize("options", [{}, {"human_edge_coding": "mean", "weights": "projects"}, {"human_edges": "preferences", "preferences": "judges"}, {"human_edges": "none"}, {"smoothing": 0.0, "combination": "mean"}, {"human_edge_coding": "accept", "combination": "quality"}])  # fmt: skip
@pytest.mark.parametrize("seed", [1, 2])
def test_the_labor_index(seed: int, options: dict[str, Any]) -> None:
    world, settings = labor_index(seed), ReportSettings(options=options)
    found, seen = differences(world, build("rli", world.tables(), header(seed=5, settings=settings), settings))
    assert found == []
    assert {"rli_elo", "rli_elo_edges", "autoflation", "failure_tags", "rater_agreement", "evaluation_times"} <= seen


@pytest.mark.parametrize("kind", ["overview", "jobbench", "freelance"])
@pytest.mark.parametrize("missing", ["zero", "exclude", "refuse"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_other_reports(seed: int, missing: Any, kind: str) -> None:
    world, settings = office(seed), ReportSettings(missing=missing, disputed="exclude", seed=seed)
    head = header(groupings=[BY_OCCUPATION], settings=settings)
    found, seen = differences(world, build(cast("Kind", kind), world.tables(), head, settings))
    assert found == []
    assert len(seen) >= 5


def test_a_changed_figure_is_found_in_each_table() -> None:
    world = labor_index(1)
    report = build("rli", world.tables(), header(), ReportSettings())
    for table in report.tables:
        if table.name in FORMULAS and table.rows:
            name, value = next((k, v) for k, v in reversed(table.rows[0].items()) if isinstance(v, float | int))
            table.rows[0][name] = value + 0.001
            found, _ = differences(world, report)
            assert found, table.name
            assert all(cell.startswith(table.name) for cell in found)
            table.rows[0][name] = value


def test_without_numpy_strengths_are_the_same_and_their_intervals_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    world = labor_index(1)
    report = build("rli", world.tables(), header(), ReportSettings())
    monkeypatch.setattr(labor, "numpy", None)
    assert differences(world, report)[0] == []
    elo = next(t for t in report.tables if t.name == "rli_elo")
    elo.rows[1]["elo_low"] = 0.0
    assert differences(world, report)[0] == []
    elo.rows[1]["elo"] = 0.0
    assert differences(world, report)[0] == ["rli_elo[" + str(elo.rows[1]["agent"]) + "].elo"]

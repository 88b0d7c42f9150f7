"""The verifier has a formula for every table: whatever is changed, in a report or below it, is found and named."""

import copy
import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from service.domain.reports import ReportSettings
from service.lifecycle.handover.verify_program import chance, forecasting, forecasts, jobs, labor, means, regressions
from service.lifecycle.handover.verify_program.chance import Chance
from service.lifecycle.handover.verify_program.comparing import compare, figures, formula_of, same
from service.lifecycle.handover.verify_program.formulas import NEAR
from service.lifecycle.handover.verify_program.reading import Data
from service.reporting.reports import registry
from service.reporting.reports.registry import Kind
from tests.unit.lifecycle.test_verifier_agrees import BY_OCCUPATION, labor_index, office, read
from tests.unit.reporting.reports import test_payworthy
from tests.unit.reporting.reports.world import World, header

Row = dict[str, Any]
COVARIATES = "group,wanted\no0,0.5\no1,0.25\no2,\no9,1\n"


def postings() -> World:
    """Jobs with forecasts, three attempts at half of them, and a second plan that reads the opening alone."""
    world = test_payworthy.made()
    for n in range(30):
        for sample in (2, 3):
            world.run("base", f"t{n:03}", float(n % (sample + 1) == 0), sample=sample)
    for n, run in enumerate(r for r in list(world.rows["runs"]) if r["sample"] == 1):
        world.verdict(
            run["run_id"], method="llm_panel", plan="opening@1", score=float(n % 3 > 0), max_score=1.0, cost_usd=0.1,
            detail={"reading": "opening"},
        )  # fmt: skip
    for n in range(test_payworthy.JOBS):
        world.rows["tasks"][n]["facets"] = json.dumps(
            json.loads(world.rows["tasks"][n]["facets"]) | {"hard@1": n % 7, "tone@2": ("warm", "cold", "dry")[n % 3]}
        )
        world.add(
            "embeddings", task_id=f"t{n:03}", model="small", asked_dimensions=3,
            vector=[math.sin(n), math.cos(3 * n), float(n % 2)],
        )  # fmt: skip
        for rater in range(1 + n % 3):
            run = next(r for r in world.rows["runs"] if r["task_id"] == f"t{n:03}")
            world.add(
                "ratings", rating_id=f"rt_{n}_{rater}", form="human_panel", purpose="rating", by_model=False,
                run_id=run["run_id"], item_id=f"i{n}", rater=f"p{rater}", tags=[], accept=(n + rater) % 2 > 0,
            )  # fmt: skip
    return world


def offices() -> World:
    """Two evaluations, a second plan, votes of judges, and models that changed their names."""
    world = office(2)
    for n, run in enumerate(world.rows["runs"]):
        run["evaluation_id"] = f"eval_{1 + n % 2}"
        run["flags"] = '["retried", "contamination_suspected"]' if n % 5 == 0 else "[]"
        run["ended_because"] = "memory_limit" if n % 7 == 0 else "completed"
    for n, verdict in enumerate(list(world.rows["verdicts"])):
        rows = [(f"r{k}", (n + k) % 3 > 0, 10.0) for k in (1, 2, 3)]
        world.verdict(verdict["run_id"], [*rows, ("r1.c1", n % 2 > 0, 0.0)], plan="other@2", cost_usd=0.25)
        for k in (1, 2):
            content = {"rubric_passed": n % 4 > 0 or k > 1}
            state = "invalid" if n % 9 == 0 else "valid"
            world.add("votes", grading_id=verdict["grading_id"], run_id=verdict["run_id"], judge="j", item="r1", n=k, state=state, content=content)  # fmt: skip
    for n in range(3):
        world.add("model_requests", model="m", reported_model=f"m-{n % 2}")
    return world


WORLDS: dict[str, Callable[[], World]] = {
    "postings": postings,
    "offices": offices,
    "labor": lambda: labor_index(3),
    "tests": lambda: office(3),
}
BEST: dict[str, Row] = {
    "list": {"rule": "list", "agents": ["agent 0", "agent 3"]},
    "vendor": {"rule": "vendor", "scaffolds": {"v": "s1"}},
    "split": {"rule": "split", "facet": "split", "value": "s0"},
}
PAYWORTHY: Row = {
    "base_agent": "base", "tool_agent": "tools", "corpus_shares": {"writing": 0.5, "design": 0.4, "law": 0.1},
    "families": {"good": "A", "a": "A", "noise": "B", "b": "B"}, "top_shares": [0.1, 0.5], "annotation_facets": ["hard@1", "tone@2", "none@1"],
}  # fmt: skip
OPTIONS: Row = {"covariates": COVARIATES}
CASES: dict[str, tuple[Kind, str, Row]] = {
    "overview": ("overview", "offices", {"reference_agent": "agent 1"}),
    "comparison": ("comparison", "offices", {}),
    "freelance": ("freelance", "tests", {}),
    "rli": ("rli", "labor", {}),
    "payworthy": ("payworthy", "postings", {"plans_beside": ["opening"], "options": PAYWORTHY}),
    "payworthy, defined": ("payworthy", "postings", {"options": {"defined_share": 0.5, "only_before": True}}),
}
for _rule, _choice in BEST.items():
    _chosen: Row = {"plans_beside": ["other@2"], "options": OPTIONS | {"best_scaffold": _choice}}
    CASES[f"jobbench, {_rule}"] = ("jobbench", "offices", _chosen)


@cache
def made(case: str) -> tuple[dict[str, list[Row]], Row]:
    """Return the rows as the verifier reads them, and the report over them."""
    kind, name, chosen = CASES[case]
    world, settings = WORLDS[name](), ReportSettings(seed=11, draws=200, **chosen)
    counts: Row = {table: len(world.rows[table]) for table in ("agents", "tasks", "runs")}
    evaluations = ["eval_1", "eval_2"] if kind == "comparison" else ["eval_1"]
    head = header(groupings=[BY_OCCUPATION], settings=settings, evaluations=evaluations, **counts)
    return read(world), registry.build(kind, world.tables(), head, settings).model_dump(mode="json")


def differing(rows: dict[str, list[Row]], report: Row) -> list[str]:
    return [cell for cell, said, found, near in figures(Data(rows, report), report) if not same(said, found, near)]


@pytest.mark.parametrize("case", CASES)
def test_two_programs_make_the_same_of_every_table(case: str) -> None:
    rows, report = made(case)
    assert differing(rows, report) == []
    assert all(table["rows"] for table in report["tables"] if table["name"] not in {"failure_causes", "exclusions"})


@pytest.mark.parametrize("case", CASES)
def test_each_changed_cell_of_each_table_is_found(case: str) -> None:
    rows, report = made(case)
    x = Data(rows, report)
    for table in report["tables"]:
        formula, key = formula_of(table["name"])
        found = formula(x, table)
        for place, row in enumerate(table["rows"]):
            for column in row:
                changed = {**table, "rows": [*table["rows"]]}
                changed["rows"][place] = {**row, column: altered(row[column])}
                cells = [c for c, old, new in compare(changed, found, key) if not same(old, new, NEAR.get(table["name"], 1e-9))]  # fmt: skip
                assert cells, (table["name"], place, column)
                assert all(cell.startswith(table["name"]) for cell in cells)
        others: list[Row] = [{"n": table["n"] + 1}, {"excluded": {"made up": 1}}, {"rows": table["rows"][1:]}]
        for other in others if table["rows"] else others[:2]:
            assert [c for c, old, new in compare({**table, **other}, found, key) if not same(old, new)]


def altered(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.01 + 0.0131
    return 0.5 if value is None else f"{value}x"


def test_each_changed_line_on_validity_is_found() -> None:
    rows, report = made("overview")
    for place, line in enumerate(report["validity"]):
        for name in ("count", "of", "warning"):
            changed = copy.deepcopy(report)
            changed["validity"][place][name] = altered(line[name])
            assert differing(rows, changed) == [f"validity[{line['name']}].{name}"]
    without = {**report, "validity": report["validity"][1:], "header": {**report["header"], "runs": 1}}
    assert differing(rows, without) == ["header.runs", "validity[contamination_suspected]"]


BELOW: list[tuple[str, str, str, Any]] = [
    ("payworthy", "forecasts", "p_hat", 0.99), ("payworthy", "forecasts", "context_dependence", 5),
    ("payworthy", "forecasts", "made_before_attempt", False), ("payworthy", "embeddings", "vector", [0.0, 0.0, 9.0]),
    ("payworthy", "ratings", "accept", True), ("payworthy", "tasks", "price_usd", 7.0),
    ("payworthy", "verdicts", "detail", {}), ("payworthy", "criteria", "detail", {"value": False}),
    ("payworthy", "runs", "counted", 0.0), ("jobbench, list", "criteria", "passed", False),
    ("jobbench, list", "verdicts", "score", 1.0), ("jobbench, split", "runs", "counted", 0.99),
    ("jobbench, vendor", "agents", "vendor", "w"), ("comparison", "runs", "counted", 0.5),
    ("overview", "votes", "content", {"rubric_passed": "no"}), ("overview", "model_requests", "reported_model", "other"),
    ("overview", "runs", "flags", ["assisted"]), ("freelance", "tasks", "price_usd", 1.0),
    ("rli", "ratings", "accept", True), ("rli", "preferences", "value", 0.25), ("rli", "agents", "released_on", "2020-01-01"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "table", "column", "value"), BELOW)
def test_a_changed_row_below_the_report_is_found(case: str, table: str, column: str, value: Any) -> None:
    rows, report = made(case)
    places = [k for k, row in enumerate(rows[table]) if row[column] != value]
    assert places
    for place in (places[0], places[-1]):
        changed = {**rows, table: [*rows[table]]}
        changed[table][place] = {**rows[table][place], column: value}
        if differing(changed, report):
            return
    pytest.fail(f"{table}.{column} may be anything")


def test_there_is_a_formula_for_every_table_that_any_report_makes() -> None:
    folder = Path(str(registry.__file__)).parent
    names = {n for path in folder.glob("*.py") for n in re.findall(r'\btable\(\s*data,\s*f?"([a-z_]+)', path.read_text())}  # fmt: skip
    assert len(names) > 30
    assert [name for name in names if formula_of(f"{name}1" if name.endswith("_") else name) is None] == []
    rows, report = made("comparison")
    unknown = {**report, "tables": [{**report["tables"][0], "name": "from_elsewhere"}]}
    assert differing(rows, unknown) == ["from_elsewhere"]


@pytest.mark.parametrize("case", ["payworthy", "jobbench, split", "comparison", "rli"])
def test_without_numpy_no_figure_is_left_out_but_ends_of_intervals(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, report = made(case)
    for part in (chance, forecasting, forecasts, jobs, labor, means, regressions):
        monkeypatch.setattr(part, "numpy", None)
    assert differing(rows, report) == []
    left = [cell for cell, _, found, _ in figures(Data(rows, report), report) if found is means.SKIPPED]
    assert left
    assert [cell for cell in left if not cell.endswith(("_low", "_high"))] == []


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**40 + 7, 2**130 + 3])
def test_chance_is_numpys(seed: int) -> None:
    import numpy as np

    theirs, mine = np.random.default_rng(seed), Chance(seed)
    assert [mine.random() for _ in range(3)] == theirs.random(3).tolist()
    assert mine.permutation(37) == theirs.permutation(37).tolist()
    assert mine.permutation(300) == theirs.permutation(300).tolist()
    assert [mine.sign() for _ in range(7)] == (1 - 2 * theirs.integers(0, 2, size=7)).tolist()
    assert mine.random() == theirs.random()

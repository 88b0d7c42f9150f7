"""Further tables of JobBench, those of the Freelance benchmark, and rates and dollars of the Remote Labor Index."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from service.lifecycle.handover.verify_program.means import by_task, share, wilson
from service.lifecycle.handover.verify_program.reading import PART, Data, Row


def complexity(x: Data, table: Row) -> Row:
    other: Any = table["settings"]["reference_evaluation"]
    facet: str = table["settings"]["split_facet"]
    rows: list[Row] = []
    names = ("wall_s", "working_s", "turns", "tool_calls", "events")
    base = {name: middle(r[name] for r in x.counted if r["evaluation_id"] == other) for name in names}
    for agent, runs in x.by_agent.items():
        mine = [r for r in runs if other is None or r["evaluation_id"] != other]
        splits = sorted({value for r in mine for value in x.facet(r["task_id"], facet)})
        for split in ["all", *splits] if len(splits) > 1 else ["all"]:
            part = [r for r in mine if split == "all" or split in x.facet(r["task_id"], facet)]
            row = {
                "agent": x.agents[agent]["label"],
                "split": split,
                "runs": len(part),
                "mean_score": share(sum(r["counted"] for r in part), len(part)),
            }
            for name in names:
                row[name] = middle(r[name] for r in part)
                row[f"{name}_ratio"] = None if row[name] is None or not base[name] else row[name] / base[name]
            rows.append(row)
    return x.table(rows)


def middle(values: Iterable[Any]) -> Any:
    known = [float(value) for value in values if value is not None]
    return median(known) if known else None


def union_pass_rate(x: Data, _table: Row) -> Row:
    task: dict[str, str] = {r["run_id"]: r["task_id"] for r in x.counted}
    best: dict[tuple[str, str], bool] = {}
    parents = {(r["grading_id"], PART.sub("", r["criterion"])) for r in x.items() if PART.search(r["criterion"])}
    for r in x.items():
        if r["run_id"] in task and r["passed"] is not None and (r["grading_id"], r["criterion"]) not in parents:
            key = (task[r["run_id"]], r["criterion"])
            best[key] = best.get(key, False) or r["passed"]
    passed = sum(best.values())
    return x.table([{"criteria": len(best), "passed": passed, "rate": share(passed, len(best))}])


def tested(x: Data) -> dict[str, tuple[int, int, Any]]:
    """Run → (tests, wrong, certified); runs of which nobody knows the tests are left out."""
    own: dict[str, list[bool]] = defaultdict(list)
    most: dict[str, int] = defaultdict(int)
    for row in x.items("test_cases"):
        own[row["run_id"]].append(bool(row["passed"]))
    said = {v["run_id"]: v["detail"].get("certified") for v in x.standing if v["method"] == "test_cases"}
    for run in x.runs:
        most[run["task_id"]] = max(most[run["task_id"]], len(own.get(run["run_id"], ())))
    found: dict[str, tuple[int, int, Any]] = {}
    for run in x.counted:
        mine, n = own.get(run["run_id"]), most[run["task_id"]]
        if mine:
            by_policy = run["counted"] == 0 and run["fraction"] is not None and run["fraction"] > 0
            found[run["run_id"]] = (
                len(mine),
                len(mine) if by_policy else len(mine) - sum(mine),
                said.get(run["run_id"]),
            )
        elif n and run["counted"] == 0:
            found[run["run_id"]] = (n, n, None)
    return found


def of_agents(x: Data) -> tuple[list[tuple[str, list[tuple[int, int, Any]], list[Row]]], dict[str, int]]:
    every = tested(x)
    left = {**x.excluded, "without tests": len(x.counted) - len(every)}
    return [
        (x.agents[a]["label"], [every[r["run_id"]] for r in runs if r["run_id"] in every], runs)
        for a, runs in x.by_agent.items()
    ], left


def freelance_results(x: Data, _table: Row) -> Row:
    agents, left = of_agents(x)
    rows: list[Row] = []
    for label, tests, runs in agents:
        solved, money = sum(wrong == 0 for _, wrong, _ in tests), earned(x, runs)
        low, high = wilson(solved, len(tests))
        rows.append({
            "agent": label, "attempted": len(tests), "solved": solved, "success_rate": share(solved, len(tests)),
            "success_rate_low": low, "success_rate_high": high, "earned_usd": money["earned_usd"], "unpriced": money["unpriced"],
            "test_accuracy": share(sum(n - wrong for n, wrong, _ in tests), sum(n for n, _, _ in tests)),
            "with_passing_score": sum(c is not None for *_, c in tests), "certified": sum(bool(c) for *_, c in tests),
        })  # fmt: skip
    return x.table(rows, None, left)


def freelance_tests(x: Data, _table: Row) -> Row:
    agents, left = of_agents(x)
    sums = [(label, sum(n for n, _, _ in tests), sum(w for _, w, _ in tests)) for label, tests, _ in agents]
    rows = [{"agent": a, "tests": n, "correct": n - w, "incorrect": w, "accuracy": share(n - w, n)} for a, n, w in sums]
    return x.table(rows, sum(n for _, n, _ in sums), left)


def wrong_histogram(x: Data, _table: Row) -> Row:
    agents, left = of_agents(x)
    rows = [
        {"agent": label, "wrong": k, "runs": sum(w == k for _, w, _ in tests)}
        for label, tests, _ in agents
        for k in range(max((n for n, _, _ in tests), default=-1) + 1)
    ]
    return x.table(rows, None, left)


def works(x: Data, runs: Sequence[Row]) -> list[tuple[Any, float, Any]]:
    """Each task of an agent: its price, the share of samples that solved it, when the last one ended."""
    last: dict[str, list[datetime]] = defaultdict(list)
    for run in runs:
        last[run["task_id"]] += [] if run["ended_at"] is None else [run["ended_at"]]
    return [
        (x.tasks[t]["price_usd"], s, max(last[t], default=None))
        for t, s in by_task(runs, lambda r: float(r["solved"])).items()
    ]


def earned(x: Data, runs: Sequence[Row]) -> Row:
    found = works(x, runs)
    priced = [(price, solved) for price, solved, _ in found if price is not None]
    money, possible = math.fsum(p * s for p, s in priced), math.fsum(p for p, _ in priced)
    return {
        "priced": len(priced), "unpriced": len(found) - len(priced), "earned_usd": money, "possible_usd": possible,
        "share": share(money, possible), "mean_price_usd": share(money, math.fsum(s for _, s in priced)),
        "solved_unpriced": math.fsum(s for price, s, _ in found if price is None),
    }  # fmt: skip


def earnings(x: Data, _table: Row) -> Row:
    return x.table([{"agent": x.agents[a]["label"], **earned(x, runs)} for a, runs in x.by_agent.items()])


def cumulative_value(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    for agent, runs in x.by_agent.items():
        points: list[Row] = []
        solved, money = 0.0, 0.0
        for n, (price, share_of, at) in enumerate(sorted((w for w in works(x, runs) if w[2]), key=lambda w: w[2]), 1):
            solved, money = solved + share_of, money + share_of * (price or 0.0)
            when = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            points.append(
                {"agent": x.agents[agent]["label"], "at": when, "done": n, "solved": solved, "earned_usd": money}
            )
        step = (len(points) - 1) / 199
        rows += points if len(points) <= 200 else [points[round(n * step)] for n in range(200)]
    return x.table(rows)


def automation_rate(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    for agent, runs in x.by_agent.items():
        accepted = sum(r["solved"] for r in runs)
        low, high = wilson(accepted, len(runs))
        rows.append({
            "agent": x.agents[agent]["label"], "projects": len(runs), "accepted": accepted, "rate": share(accepted, len(runs)),
            "rate_low": low, "rate_high": high, "no_deliverable": sum("no_deliverable" in r["flags"] for r in runs),
        })  # fmt: skip
    return x.table(rows)

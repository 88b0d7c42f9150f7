"""Tables of every report, and of JobBench's."""

import math
import re
from collections import Counter, defaultdict
from typing import Any

from service.lifecycle.handover.verify_program.means import Scores, bootstrap, by_task, share, wilson
from service.lifecycle.handover.verify_program.reading import Data, Row

Scored = tuple[Row, Any, Any, dict[str, float]]
"""Agent, score, dollars of one pass, score by task."""


def results(x: Data, _table: Row) -> Row:
    scores = Scores(x)
    rows: list[Row] = []
    ends = scores.intervals(list(x.agents), x.attempted)
    for agent, runs in x.by_agent.items():
        figures, solved = scores.figures(agent, x.attempted), sum(r["solved"] for r in runs)
        low, high = wilson(solved, len(runs))
        rows.append({
            "agent": x.agents[agent]["label"], "runs": sum(r["agent_id"] == agent for r in x.runs), "counted": len(runs),
            "missing_tasks": figures["missing"], "score": figures["macro"], "score_low": ends[agent][0],
            "score_high": ends[agent][1], "solved": solved, "solved_rate": share(solved, len(runs)),
            "solved_rate_low": low, "solved_rate_high": high,
        })  # fmt: skip
    return x.table(rows)


def exclusions(x: Data, _table: Row) -> Row:
    counts = Counter(
        (x.agents[r["agent_id"]]["label"], r["exclusion"] or "unknown") for r in x.runs if r["counted"] is None
    )
    return x.table([{"agent": a, "exclusion": why, "runs": n} for (a, why), n in counts.items()], len(x.runs))


def ends(x: Data, _table: Row) -> Row:
    counts = Counter((r["agent_id"], r["ended_because"] or "not ended") for r in x.runs)
    of = Counter(r["agent_id"] for r in x.runs)
    rows = [
        {"agent": x.agents[a]["label"], "ended_because": end, "runs": n, "share": n / of[a]}
        for (a, end), n in counts.items()
    ]
    return x.table(rows, len(x.runs), {})


def failure_causes(x: Data, _table: Row) -> Row:
    agent_of = {run["run_id"]: run["agent_id"] for run in x.counted}
    failed = [row for row in x.items() if row["passed"] is False and "cause" in row["detail"]]
    said: dict[str, Counter[str]] = defaultdict(Counter)
    n = 0
    for row in failed:
        cause = row["detail"].get("cause")
        if cause and row["run_id"] in agent_of:
            said[agent_of[row["run_id"]]][str(cause)[:100]] += 1
            n += 1
    rows = [
        {"agent": x.agents[a]["label"], "cause": cause, "items": k, "share": k / sum(counts.values())}
        for a, counts in said.items()
        for cause, k in counts.items()
    ]
    return x.table(rows, n, {"no cause said": len(failed) - n})


def pass_at_k(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    for agent, runs in x.by_agent.items():
        tasks: dict[str, list[bool]] = defaultdict(list)
        for run in runs:
            tasks[run["task_id"]].append(run["solved"])
        for k in (k for k in (1, 2, 3, 5, 10) if k <= max(map(len, tasks.values()), default=0)):
            enough = [(len(s), sum(s)) for s in tasks.values() if len(s) >= k]
            anyone = [1 - math.comb(n - c, k) / math.comb(n, k) for n, c in enough]
            each = [math.comb(c, k) / math.comb(n, k) for n, c in enough]
            rows.append({
                "agent": x.agents[agent]["label"], "k": k, "tasks": len(enough), "any": share(math.fsum(anyone), len(enough)),
                "all": share(math.fsum(each), len(enough)),
            })  # fmt: skip
    return x.table(rows)


def scored(x: Data) -> list[Scored]:
    """Each agent's score, what one pass cost it, and its score on each task."""
    scores = Scores(x)
    found: list[Scored] = []
    for agent, runs in x.by_agent.items():
        known = runs and all(r["spent"] is not None for r in runs)
        cost = sum(by_task(runs, lambda r: r["spent"]).values()) if known else None
        found.append(
            (
                x.agents[agent],
                scores.figures(agent, x.attempted)["macro"],
                cost,
                {t: s[0] for t, s in scores.done[agent].items()},
            )
        )
    return found


def cost_against_score(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    all_of = scored(x)
    known = [(cost, score) for _, score, cost, _ in all_of if None not in (cost, score)]
    for agent, score, cost, tasks in all_of:
        runs = x.by_agent[agent["agent_id"]]
        every = [r["cost_usd_all_attempts"] for r in runs if r["cost_usd_all_attempts"] is not None]
        beaten = (
            any(c <= cost and s >= score and (c < cost or s > score) for c, s in known)
            if None not in (cost, score)
            else True
        )
        rows.append({
            "agent": agent["label"], "score": score, "cost_usd": cost,
            "cost_per_task_usd": cost / len(tasks) if cost is not None and tasks else None,
            "cost_all_attempts_usd": sum(every) if every else None, "unknown": sum(r["spent"] is None for r in runs),
            "declared": sum(r["cost_basis"] == "declared" for r in runs), "frontier": not beaten,
        })  # fmt: skip
    return x.table(rows)


def effort(agent: Row) -> str:
    return agent["effort"] or "default"


def scaffold(agent: Row) -> str:
    return agent["scaffold"].partition("@")[0]


def effort_sweep(x: Data, _table: Row) -> Row:
    all_of = scored(x)
    efforts: dict[tuple[str, Any], set[str]] = defaultdict(set)
    for agent, *_ in all_of:
        efforts[scaffold(agent), agent["model"]].add(effort(agent))
    rows = [
        {
            "scaffold": scaffold(a),
            "model": a["model"],
            "effort": effort(a),
            "agent": a["label"],
            "score": score,
            "cost_usd": cost,
        }
        for a, score, cost, _ in all_of
        if len(efforts[scaffold(a), a["model"]]) > 1
    ]
    return x.table(rows)


def scaffold_deltas(x: Data, _table: Row) -> Row:
    all_of = scored(x)
    rows: list[Row] = []
    for n, (first, _, _, before) in enumerate(all_of):
        for second, _, _, after in all_of[n + 1 :]:
            same = (
                first["model"] is not None and first["model"] == second["model"] and first["effort"] == second["effort"]
            )
            if not same or scaffold(first) == scaffold(second):
                continue
            differences = [after[t] - before[t] for t in sorted(set(before) & set(after))]
            ((low, high),) = bootstrap([differences], [[1.0] * len(differences)], x.seed, x.draws)
            rows.append({
                "model": first["model"], "effort": effort(first), "first": first["label"], "second": second["label"],
                "tasks": len(differences), "difference": share(math.fsum(differences), len(differences)),
                "difference_low": low, "difference_high": high,
            })  # fmt: skip
    return x.table(rows)


def jobbench_scores(x: Data, table: Row) -> Row:
    scores, agents = Scores(x), list(x.agents)
    parts = {"macro": x.attempted, **groups(x, table["settings"])}
    ends = {name: scores.intervals(agents, tasks) for name, tasks in parts.items()}
    rows: list[Row] = []
    for agent in agents:
        row = {"agent": x.agents[agent]["label"], **scores.figures(agent, x.attempted)}
        for name, tasks in parts.items():
            row.update(
                {
                    name: scores.figures(agent, tasks)["macro"],
                    f"{name}_low": ends[name][agent][0],
                    f"{name}_high": ends[name][agent][1],
                }
            )
        rows.append(row)
    return x.table(rows)


def groups(x: Data, settings: Row) -> dict[str, list[str]]:
    facet = next((g["facet"] for g in x.header["groupings"] if g["name"] == settings["grouping"]), None)
    if facet is None:
        return {}
    merged = {value: column for column, values in settings["merges"].items() for value in values}
    found: dict[str, list[str]] = defaultdict(list)
    for task in x.attempted:
        for name in dict.fromkeys(merged.get(v, v) for v in x.facet(task, facet)):
            found[name].append(task)
    ordered = sorted(found.items(), key=lambda item: (item[0] in settings["merges"], -len(item[1]), item[0]))
    if len(ordered) > 60:
        ordered = [*ordered[:59], ("All others", sorted({t for _, tasks in ordered[59:] for t in tasks}))]
    slug = [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] for name, _ in ordered]
    return {f"group_{n}_{slug[n - 1]}": tasks for n, (_, tasks) in enumerate(ordered, 1)}

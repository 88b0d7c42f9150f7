"""One agent per model, judges side by side, a reader's own figures, and comparisons of two."""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from io import StringIO
from itertools import product
from statistics import fmean, median
from typing import Any

from service.lifecycle.handover.verify_program.chance import Chance
from service.lifecycle.handover.verify_program.general import scaffold
from service.lifecycle.handover.verify_program.means import Scores, bootstrap, by_task, share
from service.lifecycle.handover.verify_program.reading import PART, Data, Row

Left = dict[str, str]
"""Agent's label → why it is not in the main table."""


# --- one agent per model -----------------------------------------------------------------------------------------------
def main_table(x: Data, table: Row) -> Row:
    scores, choice, tasks = Scores(x), table["settings"], x.attempted
    if choice["rule"] == "split":
        there = [t for t in tasks if choice["value"] in x.facet(t, choice["facet"])]
        tasks = [t for t in tasks if t not in there]
        left = by_split(x, scores, there)
    else:
        left = by_rule(x, choice)
    agents = [a for a, agent in x.agents.items() if agent["label"] not in left]
    ends = scores.intervals(agents, tasks)
    rows = [
        {
            "agent": x.agents[a]["label"],
            **scores.figures(a, tasks),
            "macro_low": ends[a][0],
            "macro_high": ends[a][1],
        }
        for a in agents
    ]
    n = sum(r["agent_id"] in agents and r["task_id"] in tasks for r in x.counted)
    return x.table(rows, n, Counter(left.values()))


def by_rule(x: Data, choice: Row) -> Left:
    if choice["rule"] == "list":
        return {a["label"]: "not named" for a in x.agents.values() if a["label"] not in choice["agents"]}
    left: Left = {}
    for agent in x.agents.values():
        wanted = choice["scaffolds"].get(agent["vendor"] or "", choice["scaffolds"].get("*"))
        if wanted != scaffold(agent):
            left[agent["label"]] = f"not in {wanted}" if wanted else "no scaffold is named for its vendor"
    return left


def by_split(x: Data, scores: Scores, there: Sequence[str]) -> Left:
    """All but each model's best on the other tasks."""
    known = {x.agents[a]["label"]: scores.figures(a, there)["macro"] for a in x.agents if scores.done[a]}
    best: dict[Any, str] = {}
    for agent in sorted(x.agents.values(), key=lambda a: a["label"]):
        score, holder = known.get(agent["label"]), best.get(agent["model"])
        if score is not None and (holder is None or score > known[holder]):
            best[agent["model"]] = agent["label"]
    others = [a["label"] for a in x.agents.values() if a["label"] not in best.values()]
    return {a: "no score there" if known.get(a) is None else "another scaffold is better there" for a in others}


# --- judges side by side ------------------------------------------------------------------------------------------------
def agreeing(first: Sequence[Any], second: Sequence[Any]) -> Any:
    return share(sum(a == b for a, b in zip(first, second)), len(first))


def kappa_of(first: Sequence[Any], second: Sequence[Any]) -> Any:
    """J. Cohen (1960)."""
    if not first:
        return None
    n, mine, others = len(first), Counter(first), Counter(second)
    chance = sum(mine[label] * others[label] for label in mine) / (n * n)
    return None if math.isclose(chance, 1.0) else (agreeing(first, second) - chance) / (1 - chance)


class Side:
    """One plan's gradings: each run's share of the points, its finest items, and what its judges cost."""

    def __init__(self, x: Data, verdicts: Sequence[Row]) -> None:
        of_run: dict[str, list[Row]] = defaultdict(list)
        for one in verdicts:
            of_run[one["run_id"]].append(one)
        self.fractions: dict[str, float] = {}
        self.costs: dict[str, float] = {}
        for run, mine in of_run.items():
            most = math.fsum(v["max_score"] or 0.0 for v in mine)
            if most:
                self.fractions[run] = math.fsum(v["score"] or 0.0 for v in mine) / most
            if all(v["cost_usd"] is not None for v in mine):
                self.costs[run] = math.fsum(v["cost_usd"] for v in mine)
        self.items: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for verdict in verdicts:
            rows = x.criteria[verdict["grading_id"]]
            parents = {PART.sub("", r["criterion"]) for r in rows if PART.search(r["criterion"])}
            for r in rows:
                if r["criterion"] not in parents and r["passed"] is not None:
                    self.items[r["run_id"], r["criterion"]].append(r["passed"])

    def cost(self, runs: Sequence[Row]) -> Any:
        known = [self.costs[r["run_id"]] for r in runs if r["run_id"] in self.costs]
        return math.fsum(known) if runs and len(known) == len(runs) else None


def judge_comparison(x: Data, table: Row) -> Row:
    own, other = Side(x, x.standing), Side(x, x.gradings(table["settings"]["beside"]))
    runs = [r for r in x.counted if r["run_id"] in own.fractions and r["run_id"] in other.fractions]
    rows = [beside_row("all agents", runs, own, other, x)]
    for agent in x.agents.values():
        mine = [r for r in runs if r["agent_id"] == agent["agent_id"]]
        rows.append(beside_row(agent["label"], mine, own, other, x))
    return x.table(rows, len(runs), {**x.excluded, "not graded by both": len(x.counted) - len(runs)})


def beside_row(label: str, runs: Sequence[Row], own: Side, other: Side, x: Data) -> Row:
    before, after = (by_task(runs, lambda r, s=side: s.fractions[r["run_id"]]) for side in (own, other))
    steps = [after[task] - before[task] for task in before]
    ((low, high),) = bootstrap([steps], [[1.0] * len(steps)], x.seed, x.draws)
    solved = [[side.fractions[r["run_id"]] >= 1 for r in runs] for side in (own, other)]
    ids = {r["run_id"] for r in runs}
    pairs = [
        (a, b)
        for (run, item), first in own.items.items()
        if run in ids
        for a, b in product(first, other.items.get((run, item), []))
    ]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    return {
        "agent": label, "runs": len(runs), "before": share(math.fsum(before.values()), len(before)),
        "beside": share(math.fsum(after.values()), len(after)), "difference": share(math.fsum(steps), len(steps)),
        "difference_low": low, "difference_high": high, "agreement": agreeing(*solved), "kappa": kappa_of(*solved),
        "criteria": len(pairs), "criteria_agreement": agreeing(first, second), "criteria_kappa": kappa_of(first, second),
        "cost_usd": own.cost(runs), "cost_beside_usd": other.cost(runs),
    }  # fmt: skip


# --- a reader's own figures ---------------------------------------------------------------------------------------------
def covariate(x: Data, _table: Row) -> Row:
    options = x.settings["options"]
    facet = options.get("covariate_facet", "occupation")
    lines = list(csv.reader(StringIO(options["covariates"].lstrip("\ufeff"))))[1:]
    values = {line[0]: float(line[1]) for line in lines if line and line[1].strip()}
    scores = Scores(x)
    members: dict[str, list[str]] = defaultdict(list)
    for task in x.attempted:
        for value in x.facet(task, facet):
            members[value].append(task)
    means: dict[str, float] = {}
    for group, tasks in members.items():
        known = [v for v in (scores.figures(a, tasks)["macro"] for a in x.agents) if v is not None]
        if known:
            means[group] = math.fsum(known) / len(known)
    both = sorted(set(means) & set(values))
    mine, theirs = [means[g] for g in both], [values[g] for g in both]
    middles: tuple[Any, Any] = (median(mine), median(theirs)) if both else (None, None)
    rows = [
        {
            "group": g, "score": m, "value": v, "tasks": len(members[g]),
            "quadrant": f"{'high' if m >= middles[0] else 'low'}/{'high' if v >= middles[1] else 'low'}",
        }
        for g, m, v in zip(both, mine, theirs)
    ]  # fmt: skip
    r = correlation(mine, theirs)
    left = {"no covariate": len(set(means) - set(values)), "no score": len(set(values) - set(means))}
    found = x.table(rows, len(rows), left)
    found["settings"] = {"facet": facet, "pearson": r, "median_score": middles[0], "median_value": middles[1]}
    found["notes"] = [f"Pearson's r over {len(rows)} groups: {'undefined' if r is None else format(r, '.3f')}."]
    return found


def correlation(first: Sequence[float], second: Sequence[float]) -> Any:
    if len(first) < 2:
        return None
    a, b = fmean(first), fmean(second)
    spread = math.sqrt(math.fsum((v - a) ** 2 for v in first) * math.fsum((v - b) ** 2 for v in second))
    return max(-1.0, min(1.0, math.fsum((v - a) * (w - b) for v, w in zip(first, second)) / spread)) if spread else None


# --- comparisons ----------------------------------------------------------------------------------------------------------
def means_of(runs: Sequence[Row]) -> dict[str, float]:
    return by_task(runs, lambda r: r["counted"])


def sides_of(x: Data) -> list[dict[str, dict[str, float]]]:
    """Label → task → score, of each of the two evaluations."""
    found: list[dict[str, dict[str, float]]] = []
    for evaluation in x.header["evaluations"]:
        mine = {a["label"]: [r for r in x.by_agent[i] if r["evaluation_id"] == evaluation] for i, a in x.agents.items()}
        found.append({label: means_of(runs) for label, runs in mine.items() if runs})
    return found


def comparison(x: Data, _table: Row) -> Row:
    first, second = sides_of(x)
    alone = sorted(set(first) ^ set(second))
    rows = [{"agent": a, **paired(x, first[a], second[a])} for a in sorted(set(first) & set(second))]
    found = x.table(rows)
    found["notes"] = [f"Only in one of the two: {', '.join(alone[:50])}."] if alone else []
    return found


def changed_tasks(x: Data, _table: Row) -> Row:
    first, second = sides_of(x)
    rows: list[Row] = []
    for agent in set(first) & set(second):
        before, after = first[agent], second[agent]
        for task in set(before) & set(after):
            if before[task] != after[task]:
                name = x.tasks[task]["item_key"] or x.tasks[task]["name"]
                step = after[task] - before[task]
                rows.append(
                    {"agent": agent, "task": name, "before": before[task], "after": after[task], "difference": step}
                )
    rows.sort(key=lambda row: (-abs(row["difference"]), row["agent"], row["task"]))
    found = x.table(rows[:1000])
    found["notes"] = [f"{len(rows) - 1000} further differences are not shown."] if len(rows) > 1000 else []
    return found


def against_reference(x: Data, table: Row) -> Row:
    label = table["settings"]["reference"]
    reference = next(a for a, agent in x.agents.items() if agent["label"] == label)
    base = means_of(x.by_agent[reference])
    return x.table([
        {"agent": agent["label"], **paired(x, base, means_of(x.by_agent[a]))}
        for a, agent in x.agents.items()
        if a != reference
    ])  # fmt: skip


def paired(x: Data, before: dict[str, float], after: dict[str, float]) -> Row:
    both = sorted(set(before) & set(after))
    steps = [after[t] - before[t] for t in both]
    better, worse = sum(s > 1e-12 for s in steps), sum(s < -1e-12 for s in steps)
    ((low, high),) = bootstrap([steps], [[1.0] * len(steps)], x.seed, x.draws)
    return {
        "tasks": len(both), "before": share(math.fsum(before[t] for t in both), len(both)),
        "after": share(math.fsum(after[t] for t in both), len(both)), "difference": share(math.fsum(steps), len(steps)),
        "difference_low": low, "difference_high": high, "better": better, "worse": worse,
        "sign_p": signs_p(better, worse), "permutation_p": flipped_p(steps, x.seed, x.draws),
    }  # fmt: skip


def signs_p(better: int, worse: int) -> Any:
    n = better + worse
    below = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * below / 2**n) if n else None


def flipped_p(steps: Sequence[float], seed: int, draws: int) -> Any:
    """R. A. Fisher (1935): how often signs at random make as much of the differences."""
    if not steps:
        return None
    seen = abs(math.fsum(steps)) - 1e-12 * len(steps)
    if 2 ** len(steps) <= draws:
        every = [abs(math.fsum(s * v for s, v in zip(signs, steps))) for signs in product((1, -1), repeat=len(steps))]
        return sum(v >= seen for v in every) / len(every)
    chance = Chance(seed)
    larger = sum(abs(math.fsum(chance.sign() * v for v in steps)) >= seen for _ in range(draws))
    return (1 + larger) / (1 + draws)

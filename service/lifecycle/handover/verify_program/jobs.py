"""PayWorthy's jobs: whether the work is paid for, why not, chance, tools."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from service.lifecycle.handover.verify_program.beside import kappa_of
from service.lifecycle.handover.verify_program.chance import divided, middle_95, ratio_ends, times_drawn
from service.lifecycle.handover.verify_program.forecasting import DRAWS, auc_of
from service.lifecycle.handover.verify_program.means import SKIPPED, numpy, share
from service.lifecycle.handover.verify_program.reading import Data, Row
from service.lifecycle.handover.verify_program.regressions import betas, oracle

FIELDS = ("produced", "on_spec", "client_plausible", "pay_worthy", "fabricated")


class Jobs:
    """One agent's first counted sample of each task, tasks in their order."""

    def __init__(self, x: Data, agent: str, runs: Sequence[Row]) -> None:
        self.x, self.agent, self.label, self.runs = x, agent, x.agents[agent]["label"], list(runs)
        self.tasks: list[str] = [r["task_id"] for r in runs]
        self.accepted: list[bool] = [r["solved"] for r in runs]
        self.worth: list[Any] = [x.tasks[t]["price_usd"] for t in self.tasks]

    def groups(self, facet: str) -> list[str]:
        return [str(next(iter(self.x.facet(t, facet)), "unknown")) for t in self.tasks]

    def only(self, places: Sequence[int]) -> "Jobs":
        return Jobs(self.x, self.agent, [self.runs[k] for k in places])


def jobs_of(x: Data) -> list[Jobs]:
    found: list[Jobs] = []
    for agent, runs in x.by_agent.items():
        first: dict[str, Row] = {}
        for run in sorted(runs, key=lambda r: (r["sample"], r["run_id"])):
            first.setdefault(run["task_id"], run)
        if first:
            found.append(Jobs(x, agent, [first[t] for t in sorted(first)]))
    return found


def option(x: Data, name: str, otherwise: Any) -> Any:
    return x.settings["options"].get(name, otherwise)


def facet_of(x: Data, name: str) -> str:
    return str(option(x, f"{name}_facet", {"category": "category", "pay": "pay_type", "needs": "needs"}[name]))


def rated(name: str, labels: Sequence[bool], worth: Sequence[Any], x: Data, groups: Any = None) -> tuple[int, Row]:
    """How many jobs are worth something known, and the share of worth that holds, with its interval."""
    known = [k for k, w in enumerate(worth) if w is not None]
    tops, bottoms = [worth[k] * labels[k] for k in known], [float(worth[k]) for k in known]
    within = None if groups is None else [groups[k] for k in known]
    low, high = ratio_ends(tops, bottoms, x.seed, DRAWS, within)
    if not math.fsum(bottoms):
        low = high = None
    return len(known), {name: share(math.fsum(tops), math.fsum(bottoms)), f"{name}_low": low, f"{name}_high": high}


def acceptance(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    for jobs in jobs_of(x):
        for kind, facet in (("all", None), ("category", facet_of(x, "category")), ("pay type", facet_of(x, "pay"))):
            names = ["all"] * len(jobs.runs) if facet is None else jobs.groups(facet)
            for name in set(names):
                mine = jobs.only([k for k, one in enumerate(names) if one == name])
                n, plain = rated("accepted", mine.accepted, [1.0] * len(mine.runs), x)
                priced, dollars = rated("accepted_usd", mine.accepted, mine.worth, x)
                row: Row = {"agent": jobs.label, "by": kind, "group": name, "jobs": n, "share": n / len(jobs.runs)}
                rows.append({**row, "priced": priced, **plain, **dollars})
        if option(x, "corpus_shares", {}):
            rows.append(reweighted(jobs, option(x, "corpus_shares", {})))
    return x.table(rows, sum(len(jobs.runs) for jobs in jobs_of(x)))


def reweighted(jobs: Jobs, shares: dict[str, float]) -> Row:
    groups = jobs.groups(facet_of(jobs.x, "category"))
    sizes = Counter(groups)
    there = math.fsum(part for name, part in shares.items() if name in sizes)
    worth = [shares.get(g, 0.0) / there / sizes[g] if there else 0.0 for g in groups]
    kept = [k for k, w in enumerate(worth) if w]
    mine = [worth[k] for k in kept]
    n, found = rated("accepted", [jobs.accepted[k] for k in kept], mine, jobs.x, [groups[k] for k in kept])
    empty = dict.fromkeys(("share", "priced", "accepted_usd", "accepted_usd_low", "accepted_usd_high"))
    return {"agent": jobs.label, "by": "category", "group": "reweighted to the corpus", "jobs": n, **empty, **found}


def panel_fields(x: Data) -> dict[tuple[str, str], bool]:
    """(run, field) → what the panel's judges said, ties left out."""
    found: dict[tuple[str, str], bool] = {}
    for verdict in sorted(x.standing, key=lambda v: v["grading_id"]):
        for row in x.criteria[verdict["grading_id"]] if verdict["method"] == "llm_panel" else ():
            if row["criterion"] in FIELDS and row["detail"].get("value") is not None:
                found[row["run_id"], row["criterion"]] = row["detail"]["value"]
    return found


def panel_details(x: Data) -> dict[str, Row]:
    mine = sorted((v for v in x.standing if v["method"] == "llm_panel"), key=lambda v: v["grading_id"])
    return {v["run_id"]: v["detail"] for v in mine}


def criterion_rates(x: Data, _table: Row) -> Row:
    said = panel_fields(x)
    rows: list[Row] = []
    for jobs in jobs_of(x):
        for name in FIELDS:
            mine = jobs.only([k for k, r in enumerate(jobs.runs) if (r["run_id"], name) in said])
            held = [said[r["run_id"], name] for r in mine.runs]
            n, plain = rated("rate", held, [1.0] * len(held), x)
            priced, dollars = rated("rate_usd", held, mine.worth, x)
            rows.append({"agent": jobs.label, "criterion": name, "jobs": n, "priced": priced, **plain, **dollars})
    return x.table(rows, sum(len(jobs.runs) for jobs in jobs_of(x)))


def rejection_causes(x: Data, _table: Row) -> Row:
    details = panel_details(x)
    rows: list[Row] = []
    rejected = 0
    for jobs in jobs_of(x):
        mine = [details.get(r["run_id"], {}) for r in jobs.runs if not r["solved"]]
        rejected += len(mine)
        counts = Counter((str(d.get("cause") or "unlabeled"), str(d.get("label") or "unlabeled")) for d in mine)
        rows += [
            {"agent": jobs.label, "cause": c, "label": lb, "jobs": n, "share": n / len(mine)}
            for (c, lb), n in counts.items()
        ]
    return x.table(rows, rejected)


def repeat_attempts(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    n = 0
    for agent, runs in x.by_agent.items():
        said: dict[str, list[bool]] = defaultdict(list)
        for run in sorted(runs, key=lambda r: (r["sample"], r["run_id"])):
            said[run["task_id"]].append(run["solved"])
        several = [one for one in said.values() if len(one) > 1]
        if several:
            n += len(several)
            rows.append({"agent": x.agents[agent]["label"], "jobs": len(several), **of_chance(several)})
    return x.table(rows, n)


def of_chance(several: Sequence[Sequence[bool]]) -> Row:
    fit = betas([(sum(one), len(one)) for one in several])
    whole = [one for one in several if len(one) >= 3]
    return {
        "kappa": kappa_of([one[0] for one in several], [one[1] for one in several]), "alpha": fit and fit[0], "beta": fit and fit[1],
        "alike": 1 / (sum(fit) + 1) if fit else None, "oracle_auc": oracle(*fit) if fit else None,
        "ceiling": auc_of([one[2] for one in whole], [(one[0] + one[1]) / 2 for one in whole]),
    }  # fmt: skip


# --- tools -----------------------------------------------------------------------------------------------------------------
def tool_agent(x: Data, table: Row) -> Row:
    all_of = jobs_of(x)
    base, other = (next(j for j in all_of if j.label == table["settings"][side]) for side in ("base", "tools"))
    both = sorted({*base.tasks} & {*other.tasks})
    first, second = (one.only([k for k, t in enumerate(one.tasks) if t in both]) for one in (base, other))
    needs = first.groups(facet_of(x, "needs"))
    rows = [gained(first, second, [True] * len(needs), "all")]
    rows += [gained(first, second, [need == name for need in needs], name) for name in set(needs)]
    return x.table(rows, len(both), {"not done by both": len(base.runs) + len(other.runs) - 2 * len(both)})


def gained(first: Jobs, second: Jobs, mine: Sequence[bool], name: str) -> Row:
    """What tools gain among jobs of one need, and how much more than among the rest."""
    steps = [float(b) - float(a) for a, b in zip(first.accepted, second.accepted)]
    kinds = [[float(m) for m in mine], [float(not m) for m in mine]]
    sums = [share(math.fsum(s * k for s, k in zip(steps, kind)), sum(kind)) for kind in kinds]
    n = int(sum(kinds[0]))
    row: Row = {"group": name, "jobs": n, "gain": sums[0]}
    row["interaction"] = sums[0] - sums[1] if None not in sums else None
    for side, jobs in (("base", first), ("tools", second)):
        row[side] = share(sum(a for a, m in zip(jobs.accepted, mine) if m), n)
    ends: list[tuple[Any, Any]] = [
        (None, None) if one is None else (SKIPPED, SKIPPED) for one in (sums[0], row["interaction"])
    ]
    if numpy is not None and steps:
        groups = tuple("special" if m else "rest" for m in mine)
        times = times_drawn(len(steps), DRAWS, first.x.seed, groups).astype(float)
        parts = [divided(times @ (numpy.asarray(steps) * kind), times @ numpy.asarray(kind)) for kind in kinds]
        ends = [middle_95(parts[0]), middle_95(parts[0] - parts[1])]
    for key, (low, high) in zip(("gain", "interaction"), ends):
        row[f"{key}_low"], row[f"{key}_high"] = low, high
    return row


# --- people, and how much is read ------------------------------------------------------------------------------------------
def opinions_of(x: Data) -> dict[str, Any]:
    """Run → what most people say of it, None where they are evenly split."""
    given: dict[str, list[bool]] = defaultdict(list)
    for row in x.tables["ratings"]:
        person = row["form"] == "human_panel" and row["purpose"] == "rating" and row["by_model"] is False
        if person and row["accept"] is not None:
            given[row["run_id"]].append(row["accept"])
    return {run: None if 2 * sum(v) == len(v) else 2 * sum(v) > len(v) for run, v in given.items()}


def people_and_judge(x: Data, _table: Row) -> Row:
    said = opinions_of(x)
    rows: list[Row] = []
    n = 0
    for every in jobs_of(x):
        jobs = every.only([k for k, r in enumerate(every.runs) if said.get(r["run_id"]) is not None])
        groups = jobs.groups(facet_of(x, "category"))
        n += len(groups)
        for name in {"all", *groups} if groups else ():
            mine = [k for k, group in enumerate(groups) if name in ("all", group)]
            within = [groups[k] for k in mine]
            theirs, own = [said[jobs.runs[k]["run_id"]] for k in mine], [jobs.accepted[k] for k in mine]
            row: Row = {"agent": jobs.label, "group": name, "jobs": len(mine), "kappa": kappa_of(theirs, own)}
            row["agreement"] = share(sum(a == b for a, b in zip(theirs, own)), len(mine))
            for column, held in (("people", theirs), ("judge", own)):
                row.update(rated(column, held, [1.0] * len(held), x, within)[1])
            rows.append(row)
    return x.table(rows, n, {"evenly split": sum(value is None for value in said.values())})


def readings(x: Data, _table: Row) -> Row:
    plans = {"primary": x.standing, **{plan: x.gradings(plan) for plan in x.settings["plans_beside"]}}
    rows = [reading_of(jobs, plan, verdicts) for jobs in jobs_of(x) for plan, verdicts in plans.items()]
    return x.table(rows, sum(len(jobs.runs) for jobs in jobs_of(x)))


def reading_of(every: Jobs, plan: str, verdicts: Sequence[Row]) -> Row:
    x = every.x
    points: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for v in verdicts:
        points[v["run_id"]][0] += v["score"] or 0.0
        points[v["run_id"]][1] += v["max_score"] or 0.0
    jobs = every.only([k for k, r in enumerate(every.runs) if points.get(r["run_id"], [0, 0])[1]])
    ids, own = {r["run_id"] for r in jobs.runs}, jobs.accepted
    said = own if plan == "primary" else [points[r["run_id"]][0] >= points[r["run_id"]][1] for r in jobs.runs]
    mine = [v["detail"] for v in verdicts if v["method"] == "llm_panel" and v["run_id"] in ids]
    n, found = rated("accepted", said, [1.0] * len(said), x)
    return {
        "agent": jobs.label, "plan": plan, "jobs": n, **found, "primary": share(sum(own), n),
        "reading": ", ".join(sorted({str(d["reading"]) for d in mine if d.get("reading")})) or None,
        "external": sum("external" in (r["flags"] or []) for r in jobs.runs),
        "up": sum(b and not a for a, b in zip(own, said)), "down": sum(a and not b for a, b in zip(own, said)),
        "kappa": None if plan == "primary" else kappa_of(own, said),
    }  # fmt: skip

"""PayWorthy's forecasts: who could tell beforehand, and what told as much."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from service.lifecycle.handover.verify_program.beside import correlation, kappa_of
from service.lifecycle.handover.verify_program.chance import Chance, middle_95
from service.lifecycle.handover.verify_program.forecasting import (
    Aucs,
    Given,
    auc_drawn,
    auc_of,
    auc_within,
    claims,
    of_all,
    ranked,
    recalibrated,
    top_rate,
)
from service.lifecycle.handover.verify_program.jobs import (
    FIELDS,
    Jobs,
    facet_of,
    jobs_of,
    option,
    panel_details,
    panel_fields,
    rated,
)
from service.lifecycle.handover.verify_program.means import SKIPPED, numpy, share
from service.lifecycle.handover.verify_program.reading import Data, Row
from service.lifecycle.handover.verify_program.regressions import Columns, crossed, logit_of, spread_of, terms_of

VARIANTS = ["generic", "limits", "placebo", "misstated", *(f"{k}_{n}" for k in ("drop", "only") for n in range(1, 7))]
SCALES = (
    "context_dependence", "verifiability", "autonomy_horizon", "tool_credential_surface", "deliverable_modality",
)  # fmt: skip
TOPS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


class Forecasts:
    """What was forecast of one agent's jobs; of two of the same job the earlier one counts."""

    def __init__(self, jobs: Jobs) -> None:
        x, tasks = jobs.x, {*jobs.tasks}
        about = (None, jobs.agent)
        self.rows = [r for r in x.tables["forecasts"] if r["agent_id"] in about and r["task_id"] in tasks]
        self.left: Counter[str] = Counter(r["state"] for r in self.rows if r["state"] in ("excluded", "failed"))
        good = sorted((r for r in self.rows if r["state"] == "ok"), key=lambda r: (r["made_at"], r["forecast_id"]))
        if option(x, "only_before", False):
            before = [r for r in good if r["made_before_attempt"] is not False]
            self.left["after the attempt"] = len(good) - len(before)
            good = before
        once: dict[tuple[str, str, str], Row] = {}
        for row in good:
            once.setdefault((row["forecaster"], row["prompt"], row["task_id"]), row)
        self.left["forecast again"] = len(good) - len(once)
        self.jobs = self._defined(jobs, list(once.values()), option(x, "defined_share", None))
        place = {task: k for k, task in enumerate(self.jobs.tasks)}
        scores: dict[tuple[str, str], Given] = defaultdict(lambda: [None] * len(place))
        for (who, prompt, task), row in once.items():
            if task in place:
                scores[who, prompt][place[task]] = row["p_hat"]
        self.scores = dict(sorted(scores.items()))
        known = {prompt for _, prompt in self.scores}
        self.prompts = sorted(known, key=lambda p: (self._rank(p), p))

    def _defined(self, jobs: Jobs, rows: Sequence[Row], part: Any) -> Jobs:
        if part is None:
            return jobs
        said: dict[str, list[int]] = defaultdict(list)
        for row in rows:
            if row["deliverable_modality"] is not None:
                said[row["task_id"]].append(row["deliverable_modality"])
        kept = [k for k, t in enumerate(jobs.tasks) if said.get(t) and sum(said[t]) / len(said[t]) >= part]
        found = jobs.only(kept)
        self.left["of jobs without a defined deliverable"] = sum(r["task_id"] not in found.tasks for r in rows)
        return found

    def _rank(self, prompt: str) -> int:
        variant = prompt.partition("+")[0].partition("@")[0]
        return VARIANTS.index(variant) if variant in VARIANTS else len(VARIANTS)

    def of(self, prompt: Any) -> dict[str, Given]:
        return {who: p for (who, key), p in self.scores.items() if key == prompt}

    @property
    def main(self) -> Any:
        return "limits" if "limits" in self.prompts else next(iter(self.prompts), None)


def forecasts_of(x: Data) -> list[Forecasts]:
    return [one for one in map(Forecasts, jobs_of(x)) if one.rows]


def of_forecasts(x: Data, rows: list[Row], every: Sequence[Forecasts]) -> Row:
    left: Counter[str] = Counter()
    for one in every:
        left.update(one.left)
    return x.table(rows, sum(p is not None for one in every for given in one.scores.values() for p in given), left)


def forecasters(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        groups = one.jobs.groups(facet_of(x, "category"))
        for prompt in one.prompts:
            mine = one.of(prompt)
            aucs = Aucs(one.jobs.accepted, mine, x.seed)
            for who, given in mine.items():
                rows.append(forecaster(one, who, prompt, aucs, given, groups))
            if len(mine) > 1:
                labels, whole = of_all(one.jobs.accepted, mine)
                together = aucs if len(labels) == len(one.jobs.runs) else Aucs(labels, whole, x.seed)
                value, low, high = together.mean([*mine])
                row: Row = dict.fromkeys(rows[-1])
                row.update(agent=one.jobs.label, forecaster="mean of all", prompt=prompt, jobs=len(labels))
                rows.append({**row, "auc": value, "auc_low": low, "auc_high": high})
    return of_forecasts(x, rows, every)


def forecaster(one: Forecasts, who: str, prompt: str, aucs: Aucs, given: Given, groups: Sequence[str]) -> Row:
    known = [k for k, p in enumerate(given) if p is not None]
    labels, said = [one.jobs.accepted[k] for k in known], [given[k] for k in known]
    value, low, high = aucs.mean([who])
    again = recalibrated(labels, said, one.jobs.x.seed)
    mine = [r for r in one.rows if (r["forecaster"], r["prompt"], r["state"]) == (who, prompt, "ok")]
    return {
        "agent": one.jobs.label, "forecaster": who, "prompt": prompt, "jobs": len(known), "auc": value, "auc_low": low,
        "auc_high": high, "within_auc": auc_within(labels, said, [groups[k] for k in known]),
        **claims(labels, said, one.jobs.x.seed), "platt_ece": again[0], "platt_accuracy": again[1],
        "before": sum(r["made_before_attempt"] is True for r in mine),
        "after": sum(r["made_before_attempt"] is False for r in mine),
    }  # fmt: skip


def top_shares(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        for (who, prompt), given in one.scores.items():
            known = [k for k, p in enumerate(given) if p is not None]
            labels, said = [one.jobs.accepted[k] for k in known], [given[k] for k in known]
            for part in option(x, "top_shares", TOPS):
                found = top_rate(labels, said, part, x.seed)
                rows.append({"agent": one.jobs.label, "forecaster": who, "prompt": prompt, "share": part, **found})
    return of_forecasts(x, rows, every)


def held_against(prompt: str) -> Any:
    """The prompt that this one is compared with: of the same reason and system message."""
    variant = prompt.partition("+")[0].partition("@")[0]
    plain = "limits" if variant.startswith("drop_") else "generic"
    compared = variant in ("placebo", "misstated", "limits") or variant.partition("_")[0] in ("drop", "only")
    return plain + prompt[len(variant) :] if compared else None


def prompt_ablations(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        for prompt in one.prompts:
            against = held_against(prompt)
            if against in one.prompts:
                rows += ablated(one, prompt, against)
    return of_forecasts(x, rows, every)


def ablated(one: Forecasts, prompt: str, against: str) -> list[Row]:
    mine, other = one.of(prompt), one.of(against)
    both = [who for who in mine if who in other]
    rows: list[Row] = []

    def step(who: str, names: Sequence[str]) -> Row:
        sides = [[f"{side} {name}" for name in names] for side in ("mine", "other")]
        given = {f"mine {name}": mine[name] for name in names}
        given.update({f"other {name}": other[name] for name in names})
        labels, whole = of_all(one.jobs.accepted, given)
        aucs = Aucs(labels, whole, one.jobs.x.seed)
        value, low, high = aucs.mean(*sides)
        return {
            "agent": one.jobs.label, "forecaster": who, "prompt": prompt, "against": against, "jobs": len(labels),
            "auc": aucs.mean(sides[0])[0], "auc_against": aucs.mean(sides[1])[0], "difference": value,
            "difference_low": low, "difference_high": high,
        }  # fmt: skip

    rows += [step(who, [who]) for who in both]
    return [*rows, step("mean of all", both)] if len(both) > 1 else rows


def forecast_protocol(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        parts: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in one.rows:
            parts[row["forecaster"], row["prompt"]].append(row)
        rows += [
            {"agent": one.jobs.label, "forecaster": who, "prompt": prompt, **how_asked(part)}
            for (who, prompt), part in parts.items()
        ]
    return of_forecasts(x, rows, every)


def how_asked(part: Sequence[Row]) -> Row:
    names = {"model": "model", "reported": "reported_model", "source": "source", "template": "template_sha256"}
    said = {
        key: ", ".join(sorted({str(r[name]) for r in part if r[name] is not None})) or None
        for key, name in names.items()
    }
    states = Counter(r["state"] for r in part)
    usage: list[Row] = [r["usage"] or {} for r in part]
    costs = [r["cost_usd"] for r in part if r["asks"] > 0]
    times = sorted(r["made_at"] for r in part)
    tokens = ("input_tokens", "cached_input_tokens", "cache_write_tokens")
    return {
        **said, "ok": states["ok"], "excluded": states["excluded"], "failed": states["failed"],
        "asked_again": sum(r["asks"] > 1 for r in part), "first": times[0].isoformat(), "last": times[-1].isoformat(),
        "input_tokens": sum(u.get(name, 0) for u in usage for name in tokens),
        "output_tokens": sum(u.get("output_tokens", 0) for u in usage),
        "cost_usd": None if not costs or None in costs else math.fsum(costs),
    }  # fmt: skip


# --- what told as much ---------------------------------------------------------------------------------------------------
def dummied(values: Sequence[str], prefix: str) -> Columns:
    counts = Counter(values)
    names = sorted(counts, key=lambda name: (-counts[name], name))[1:]
    return {f"{prefix}={name}": [float(v == name) for v in values] for name in names}


def filled(values: Sequence[Any], name: str) -> Columns:
    known = [float(v) for v in values if v is not None]
    mean = math.fsum(known) / len(known) if known else 0.0
    columns = {name: [mean if v is None else float(v) for v in values]}
    return {**columns, f"{name} unknown": [float(v is None) for v in values]} if len(known) < len(values) else columns


def categories(jobs: Jobs) -> Columns:
    return dummied(jobs.groups(facet_of(jobs.x, "category")), "category")


def prices(jobs: Jobs) -> Columns:
    if all(w is None for w in jobs.worth):
        return {}
    return filled([None if w is None else math.log10(max(w, 1.0)) for w in jobs.worth], "log10 price")


def metadata(jobs: Jobs) -> Columns:
    found = prices(jobs)
    for name in (facet_of(jobs.x, "pay"), "duration", "expertise"):
        values = jobs.groups(name)
        found.update(dummied(values, name) if {*values} != {"unknown"} else {})
    return found


def scales(one: Forecasts) -> Columns:
    """The mean of each annotation over a job's forecasts."""
    found: Columns = {}
    for name in SCALES:
        said: dict[str, list[int]] = defaultdict(list)
        for row in one.rows:
            if row["state"] == "ok" and row[name] is not None:
                said[row["task_id"]].append(row[name])
        if said:
            means = [sum(said[t]) / len(said[t]) if t in said else None for t in one.jobs.tasks]
            found.update(filled(means, name))
    return found


def annotated(jobs: Jobs) -> Columns:
    """Facets that the report names: numbers, or a column for each value but one."""
    found: Columns = {}
    for name in option(jobs.x, "annotation_facets", []):
        values = [jobs.x.tasks[task]["facets"].get(name) for task in jobs.tasks]
        known = [value for value in values if value is not None]
        plain = all(isinstance(value, (int, float)) for value in known)
        found.update({} if not known else filled(values, name) if plain else dummied(jobs.groups(name), name))
    return found


def vectors(jobs: Jobs) -> tuple[Any, Columns]:
    """The model and the embeddings of the jobs' texts, where every job has one of the same length."""
    wanted, given = option(jobs.x, "embedding", None), defaultdict[tuple[str, int], dict[str, list[float]]](dict)
    for row in jobs.x.tables["embeddings"]:
        given[row["model"], row["asked_dimensions"]][row["task_id"]] = row["vector"]
    for (model, _), of_task in sorted(given.items(), key=lambda item: item[0]):
        found = [of_task.get(task) or [] for task in jobs.tasks]
        if wanted in (None, model) and found and found[0] and len({len(one) for one in found}) == 1:
            return model, {f"e{k}": list(column) for k, column in enumerate(zip(*found))}
    return None, {}


def by_hand(columns: Columns) -> Any:
    rules = {
        "context_dependence": (-1.0, 4), "tool_credential_surface": (-1.0, 2), "autonomy_horizon": (-1.0, 4),
        "verifiability": (1.0, 4), "deliverable_modality": (1.0, 0.5),
    }  # fmt: skip
    known = [(columns[name], points, least) for name, (points, least) in rules.items() if name in columns]
    return [math.fsum(p * (values[k] >= least) for values, p, least in known) for k in range(len(known[0][0]))]


def rivals(one: Forecasts) -> dict[str, Given]:
    jobs, seed = one.jobs, one.jobs.x.seed
    said, plain, known = scales(one), categories(jobs), metadata(jobs)
    wide, chance = max(1, len(said)), Chance(seed)
    drawn = [[chance.random() for _ in range(wide)] for _ in jobs.runs]
    marked, (model, text) = annotated(jobs), vectors(jobs)
    sets: dict[str, Columns] = {"categories": plain, "metadata": known, "annotations": said, "annotated facets": marked}
    sets["all of these"] = {**plain, **known, **said, **marked}
    sets[f"text embedding, {model}"] = text
    sets["noise"] = {f"noise{k}": [row[k] for row in drawn] for k in range(wide)}
    found: dict[str, Given] = {name: crossed(columns, jobs.accepted, seed) for name, columns in sets.items() if columns}
    if said:
        found["rule by hand"] = by_hand(said)
    for prompt in one.prompts:
        scores = one.of(prompt)
        if len(scores) > 1:
            found[f"mean forecast, {prompt}"] = [mean_known(said_of) for said_of in zip(*scores.values())]
    scores = one.of(one.main)
    labels, whole = of_all(jobs.accepted, scores)
    if len(scores) > 1 and len(labels) >= 5:
        fitted = iter(crossed({who: list(map(logit_of, p)) for who, p in whole.items()}, labels, seed))
        there = [None not in said_of for said_of in zip(*scores.values())]
        found[f"stacked, {one.main}"] = [next(fitted) if held else None for held in there]
    return found


def mean_known(values: Sequence[Any]) -> Any:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def baselines(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        if len(one.jobs.runs) < 5:
            continue
        aucs = Aucs(one.jobs.accepted, rivals(one), x.seed)
        for name in aucs.n:
            value, low, high = aucs.mean([name])
            row: Row = {"agent": one.jobs.label, "baseline": name, "jobs": aucs.n[name]}
            rows.append({**row, "auc": value, "auc_low": low, "auc_high": high})
    found = of_forecasts(x, rows, every)
    return {**found, "n": sum(len(one.jobs.runs) for one in every)}


def annotation_regression(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        if len(one.jobs.runs) < 5:
            continue
        columns: Columns = {}
        for name, values in {**scales(one), **annotated(one.jobs), **prices(one.jobs)}.items():
            mean, wide = spread_of(values)
            if wide >= 1e-12:
                columns[name] = [(v - mean) / wide for v in values]
        rows += [{"agent": one.jobs.label, **term} for term in terms_of(columns, one.jobs.accepted)]
    return x.table(rows, sum(len(one.jobs.runs) for one in every))


# --- other judges ---------------------------------------------------------------------------------------------------------
def labels_of(jobs: Jobs) -> dict[str, dict[str, bool]]:
    """Label → run → whether it holds: the verdict, the panel's fields, each judge's word, the unanimous, plans beside."""
    x = jobs.x
    runs = {r["run_id"]: r for r in jobs.runs}
    found = {"verdict": {i: r["solved"] for i, r in runs.items()}}
    said = panel_fields(x)
    for name in FIELDS:
        held = {run: value for (run, field), value in said.items() if field == name and run in runs}
        if held and name != "pay_worthy":
            found[name] = held
    details = {run: detail for run, detail in panel_details(x).items() if run in runs}
    judges: dict[str, dict[str, bool]] = defaultdict(dict)
    for run, detail in details.items():
        said_by: list[Row] = detail.get("judges") or []
        for judge in said_by:
            if judge["fields"]["pay_worthy"] is not None:
                judges[f"judge {judge['judge']}"][run] = judge["fields"]["pay_worthy"]
    if len(judges) > 1:
        found.update(judges)
        found["unanimous"] = {run: runs[run]["solved"] for run, detail in details.items() if detail.get("unanimous")}
    for plan in x.settings["plans_beside"]:
        found[f"plan {plan}"] = under(x, plan, runs)
    return found


def under(x: Data, plan: str, runs: Any) -> dict[str, bool]:
    points: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for v in x.gradings(plan):
        points[v["run_id"]][0] += v["score"] or 0.0
        points[v["run_id"]][1] += v["max_score"] or 0.0
    return {run: score >= most for run, (score, most) in points.items() if most and run in runs}


def judge_labels(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    every = forecasts_of(x)
    for one in every:
        known = labels_of(one.jobs)
        own = aucs_under(one, known["verdict"], one.main)
        rows += [label_row(one, name, known["verdict"], held, own) for name, held in known.items()]
    found = of_forecasts(x, rows, every)
    return {**found, "n": sum(len(one.jobs.runs) for one in every)}


def aucs_under(one: Forecasts, label: dict[str, bool], prompt: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for who, given in one.of(prompt).items():
        known = [
            (label[r["run_id"]], p) for r, p in zip(one.jobs.runs, given) if p is not None and r["run_id"] in label
        ]
        value = auc_of([y for y, _ in known], [p for _, p in known])
        if value is not None:
            found[who] = value
    return found


def label_row(
    one: Forecasts, name: str, verdict: dict[str, bool], label: dict[str, bool], own: dict[str, float]
) -> Row:
    x = one.jobs.x
    jobs = one.jobs.only([k for k, r in enumerate(one.jobs.runs) if r["run_id"] in label])
    runs = [r["run_id"] for r in jobs.runs]
    held = [label[run] for run in runs]
    n, rate = rated("rate", held, [1.0] * len(held), x)
    aucs, limits, generic = (aucs_under(one, label, prompt) for prompt in (one.main, "limits", "generic"))
    steps = [limits[who] - generic[who] for who in limits if who in generic]
    both = sorted({*own} & {*aucs})
    columns = {**categories(jobs), **dummied(jobs.groups(facet_of(x, "pay")), "pay")}
    text = vectors(jobs)[1]
    return {
        "agent": one.jobs.label, "label": name, "jobs": n, **rate,
        "kappa": None if name == "verdict" else kappa_of([verdict[run] for run in runs], held),
        "prompt": one.main, "auc_low": min(aucs.values(), default=None), "auc_high": max(aucs.values(), default=None),
        "gain": share(math.fsum(steps), len(steps)),
        "baseline_auc": auc_of(held, crossed(columns, held, x.seed)) if n >= 5 else None,
        "text_auc": auc_of(held, crossed(text, held, x.seed)) if text and n >= 5 else None,
        "spearman": None if name == "verdict" else correlation(
            ranked([own[who] for who in both]), ranked([aucs[who] for who in both])
        ),
    }  # fmt: skip


def family_residual(x: Data, table: Row) -> Row:
    rows: list[Row] = []
    n = 0
    for one in forecasts_of(x):
        judges = {name: held for name, held in labels_of(one.jobs).items() if name.startswith("judge ")}
        scores = one.of(one.main)
        if len(judges) < 2 or len(scores) < 2:
            continue
        runs = [r["run_id"] for r in one.jobs.runs]
        whole = [
            k for k, run in enumerate(runs)
            if all(run in held for held in judges.values()) and all(p[k] is not None for p in scores.values())
        ]  # fmt: skip
        said = [
            {j: [held[runs[k]] for k in whole] for j, held in judges.items()},
            {w: [p[k] for k in whole] for w, p in scores.items()},
        ]
        n += len(whole)
        row: Row = {"agent": one.jobs.label, "prompt": one.main, "forecasters": len(scores), "judges": len(judges)}
        rows.append({**row, "jobs": len(whole), **own_family(said[0], said[1], table["settings"], x.seed)})
    return x.table(rows, n)


def own_family(judges: Any, scores: Any, settings: Row, seed: int) -> Row:
    """Mean residual of the AUCs of forecasters under judges of their own family (J. W. Tukey 1977)."""

    def family(key: str) -> Any:
        return settings["families"].get(key) or settings["families"].get(key.partition("#")[0])

    mine = [
        (i, j) for i, who in enumerate(scores) for j, judge in enumerate(judges)
        if family(who) is not None and family(who) == family(judge[len("judge ") :])
    ]  # fmt: skip

    def residual(cells: Any) -> Any:
        rows, columns = [sum(row) / len(row) for row in cells], [sum(c) / len(c) for c in zip(*cells)]
        middle = sum(rows) / len(rows)
        return sum(cells[i][j] - rows[i] - columns[j] + middle for i, j in mine) / len(mine)

    found: Row = {"cells": len(mine), "residual": None, "residual_low": None, "residual_high": None}
    plain = [[auc_of(held, p) for held in judges.values()] for p in scores.values()]
    if mine and all(value is not None for row in plain for value in row):
        found["residual"] = residual(plain)
        found["residual_low"] = found["residual_high"] = SKIPPED
    if mine and numpy is not None:
        drawn = [[auc_drawn(held, p, seed, settings["draws"]) for held in judges.values()] for p in scores.values()]
        found["residual_low"], found["residual_high"] = middle_95(residual(drawn))
    return found

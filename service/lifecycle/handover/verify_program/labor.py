"""Tables of the Remote Labor Index: preferences and Elo, autoflation, and what raters say."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

from service.lifecycle.handover.verify_program.means import SKIPPED, numpy, share
from service.lifecycle.handover.verify_program.reading import Data, Row

PERSON = "human"
WORTH = {"first": 1.0, "same": 0.5, "second": 0.0}
SOFT_S = {"human_panel": 1200.0, "pairwise": 1800.0}
Pair = tuple[str, str]


def ratings_of(x: Data) -> list[Row]:
    return [row for row in sorted(x.tables["ratings"], key=lambda r: r["rating_id"]) if row["purpose"] != "gold"]


def human_value(run: Row, ratings: Sequence[int], coding: str) -> float:
    if coding == "accept":
        return 0.0 if run["solved"] else 1.0
    if not ratings:
        return 1.0 - min(1.0, run["counted"])
    values = [(3 - min(3, max(1, r))) / 2 for r in ratings]
    if coding == "mean":
        return math.fsum(values) / len(values)
    value, votes = Counter(values).most_common(1)[0]
    return value if votes * 2 > len(values) else 0.5


def preferred(x: Data, s: Row) -> tuple[dict[str, dict[Pair, float]], int, Counter[str]]:
    """Project → pair → mean preference of the first; how many preferences; what was left out."""
    runs = {run["run_id"]: run for run in x.counted}
    said: dict[tuple[str, Pair], list[float]] = defaultdict(list)
    left: Counter[str] = Counter()
    found: list[tuple[str, str, str, float]] = []
    for row in x.tables["preferences"]:
        human = row["second_agent_id"] is None
        if row["source"] != s["preferences"] and not (human and s["human_edges"] == "preferences"):
            left["other source"] += 1
        elif human and s["human_edges"] != "preferences":
            left["pairs with the reference: human edges come from elsewhere"] += 1
        elif row["first_run_id"] not in runs or (not human and row["second_run_id"] not in runs):
            left["a run that does not count"] += 1
        else:
            second = PERSON if human else row["second_agent_id"]
            found.append((row["task_id"], row["first_agent_id"], second, row["value"]))
    if s["human_edges"] == "ratings":
        given: dict[str, list[int]] = defaultdict(list)
        for r in x.tables["ratings"]:
            if r["form"] == "human_panel" and r["purpose"] == "rating" and r["rating"] is not None:
                given[r["run_id"]].append(r["rating"])
        code = s["human_edge_coding"]
        found += [(r["task_id"], PERSON, r["agent_id"], human_value(r, given[r["run_id"]], code)) for r in x.counted]
    found = [f for f in found if f[1] != f[2]]
    for task, a, b, value in found:
        said[task, (min(a, b), max(a, b))].append(value if a < b else 1 - value)
    table: dict[str, dict[Pair, float]] = defaultdict(dict)
    for (task, pair), values in said.items():
        table[task][pair] = sum(values) / len(values)
    return table, len(found), left


def player(x: Data, name: str) -> str:
    return PERSON if name == PERSON else x.agents[name]["label"]


def linked(players: Sequence[str], pairs: Sequence[Pair]) -> bool:
    reached, grows = {PERSON}, True
    while grows:
        before = len(reached)
        reached |= {p for pair in pairs if reached & set(pair) for p in pair}
        grows = len(reached) > before
    return reached >= set(players)


def solved_for(matrix: list[list[float]], right: list[float]) -> list[float]:
    if numpy is not None:
        return [float(v) for v in numpy.linalg.solve(numpy.array(matrix), numpy.array(right))]
    rows, n = [[*row, value] for row, value in zip(matrix, right)], len(right)
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        for i in range(k + 1, n):
            times = rows[i][k] / rows[k][k]
            rows[i] = [a - times * b for a, b in zip(rows[i], rows[k])]
    found = [0.0] * n
    for k in reversed(range(n)):
        found[k] = (rows[k][n] - math.fsum(rows[k][j] * found[j] for j in range(k + 1, n))) / rows[k][k]
    return found


def fitted(table: dict[str, dict[Pair, float]], weights: dict[str, int], players: Sequence[str], s: Row) -> Any:
    """Return player → Elo; nothing where the comparisons do not hang together or have no maximum."""
    sums: dict[Pair, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for task, pairs in table.items():
        for pair, value in pairs.items() if weights[task] else ():
            sums[pair][0] += weights[task] * value
            sums[pair][1] += weights[task]
    if not linked(players, list(sums)):
        return None
    place = {name: k for k, name in enumerate(players)}
    edges: list[tuple[int, int, float, float]] = []
    for (a, b), (top, n) in sums.items():
        total = n + s["smoothing"]
        scale = 1.0 if s["weights"] == "equal" else total
        p = (top + s["smoothing"] / 2) / total
        edges.append((place[a], place[b], scale * p, scale * (1 - p)))
    at = [0.0] * len(players)
    for _ in range(200):
        slope, bend = [0.0] * len(at), [[1.0 / len(at)] * len(at) for _ in at]
        for a, b, win, lose in edges:
            chance = 1 / (1 + math.exp(at[b] - at[a]))
            step, curve = win - (win + lose) * chance, (win + lose) * chance * (1 - chance)
            slope[a], slope[b] = slope[a] + step, slope[b] - step
            bend[a][a], bend[b][b] = bend[a][a] + curve, bend[b][b] + curve
            bend[a][b], bend[b][a] = bend[a][b] - curve, bend[b][a] - curve
        for k in range(len(at)):
            bend[k][k] += 1e-13
        move = solved_for(bend, slope)
        longest = max(map(abs, move))
        at = [v + m * min(1.0, 2.0 / max(longest, 1e-12)) for v, m in zip(at, move)]
        if longest < 1e-11:
            return {name: 1000 + 400 / math.log(10) * (at[k] - at[place[PERSON]]) for name, k in place.items()}
    return None


def rli_elo_edges(x: Data, table: Row) -> Row:
    found, n, left = preferred(x, table["settings"])
    rows: list[Row] = []
    if fitted_all(x, table) is not None:
        for pair in sorted({pair for pairs in found.values() for pair in pairs}):
            values = [pairs[pair] for pairs in found.values() if pair in pairs]
            first, second = (player(x, name) for name in pair)
            rows.append(
                {"first": first, "second": second, "preference": sum(values) / len(values), "projects": len(values)}
            )
    return x.table(rows, n, left)


def fitted_all(x: Data, table: Row) -> Any:
    found, _, _ = preferred(x, table["settings"])
    players = sorted({PERSON, *(p for pairs in found.values() for pair in pairs for p in pair)})
    return fitted(found, dict.fromkeys(found, 1), players, table["settings"])


def rli_elo(x: Data, table: Row) -> Row:
    s = table["settings"]
    found, n, left = preferred(x, s)
    every = {**left, **{f"runs: {why}": count for why, count in x.excluded.items()}}
    best = fitted_all(x, table)
    if best is None:
        return x.table([], n, every)
    low, high = ends_of(found, sorted(best), s)
    rows = [
        {
            "agent": player(x, name),
            "elo": value,
            "elo_low": low[name],
            "elo_high": high[name],
            "projects": sum(any(name in pair for pair in pairs) for pairs in found.values()),
        }
        for name, value in best.items()
    ]
    return x.table(rows, n, every)


def ends_of(found: dict[str, dict[Pair, float]], players: Sequence[str], s: Row) -> tuple[Row, Row]:
    tasks = sorted(found)
    if len(tasks) < 2:
        return dict.fromkeys(players), dict.fromkeys(players)
    if numpy is None:
        return {**dict.fromkeys(players, SKIPPED), PERSON: None}, {**dict.fromkeys(players, SKIPPED), PERSON: None}
    counts = numpy.random.default_rng(s["seed"]).multinomial(len(tasks), [1 / len(tasks)] * len(tasks), size=s["draws"])
    drawn = [fitted(found, dict(zip(tasks, map(int, row))), players, s) for row in counts]
    fits = [fit for fit in drawn if fit is not None]
    low: Row = dict.fromkeys(players)
    high: Row = dict.fromkeys(players)
    for name in players if len(fits) > 1 else ():
        if name != PERSON:
            low[name], high[name] = map(float, numpy.quantile([fit[name] for fit in fits], [0.025, 0.975]))
    return low, high


def autoflation(x: Data, _table: Row) -> Row:
    prices = {t: x.tasks[t]["price_usd"] for t in x.attempted}
    basket = {t: price for t, price in prices.items() if price is not None}
    accepted = [r for r in x.counted if r["solved"]]
    usable: list[tuple[str, str, float]] = []
    left = Counter({"projects without a price": len(prices) - len(basket)})
    for run in (r for r in accepted if r["task_id"] in basket):
        on = x.agents[run["agent_id"]]["released_on"]
        cost = run["spent"] if run["cost_basis"] == "measured" or x.settings["declared_costs"] else None
        left["accepted runs of models without a release date"] += on is None
        left["accepted runs of unknown or declared cost"] += cost is None
        if on is not None and cost is not None:
            usable.append((on, run["task_id"], cost))
    rows: list[Row] = []
    for day in sorted({on for on, _, _ in usable}):
        best: dict[str, float] = {}
        for on, task, cost in usable:
            if on <= day:
                best[task] = min(cost, best.get(task, cost))
        saved = [basket[t] - c for t, c in best.items() if c < basket[t]]
        cheaper, total = math.fsum(saved), math.fsum(basket.values())
        rows.append({"on": day, "autoflation": share(cheaper, total), "reduction_usd": cheaper, "projects": len(saved)})
    return x.table(rows, len(accepted), left)


def price_and_time(x: Data, _table: Row) -> Row:
    pairs = [(x.tasks[t]["price_usd"], x.tasks[t]["human_time_s"]) for t in x.attempted]
    rows = [{"price_usd": price, "hours": time / 3600} for price, time in pairs if price and time]
    return x.table(rows, len(rows), {"price or time not known": len(pairs) - len(rows)})


def failure_tags(x: Data, _table: Row) -> Row:
    agents = {r["run_id"]: x.agents[r["agent_id"]]["label"] for r in x.runs}
    rejected = [r for r in ratings_of(x) if r["accept"] is False and r["run_id"] in agents]
    rows: list[Row] = []
    for label in ["all agents", *(a["label"] for a in x.agents.values())]:
        part = [r for r in rejected if label in ("all agents", agents[r["run_id"]])]
        counts = Counter(tag for r in part for tag in set(r["tags"] or []))
        rows += [{"agent": label, "tag": t, "ratings": n, "share": n / len(part)} for t, n in counts.items()]
    return x.table(rows, len(rejected), {})


def evaluation_times(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    for form, limit in SOFT_S.items():
        times = sorted(float(r["active_s"]) for r in ratings_of(x) if r["form"] == form)
        if times:
            place = 0.9 * (len(times) - 1)
            low = math.floor(place)
            high = min(low + 1, len(times) - 1)
            row = {"form": form, "ratings": len(times), "mean_s": fmean(times), "median_s": median(times)}
            row["p90_s"] = times[low] + (times[high] - times[low]) * (place - low)
            rows.append({**row, "over": sum(t > limit for t in times) / len(times)})
    return x.table(rows, sum(r["form"] in SOFT_S for r in ratings_of(x)), {})


def evaluation_time_histogram(x: Data, _table: Row) -> Row:
    rows: list[Row] = []
    for form in SOFT_S:
        bins = [min(12, int(r["active_s"] // 300)) for r in ratings_of(x) if r["form"] == form]
        rows += [{"form": form, "from_s": p * 300, "ratings": bins.count(p)} for p in range(max(bins, default=-1) + 1)]
    return x.table(rows, sum(r["form"] in SOFT_S for r in ratings_of(x)), {})


def opinions(rows: Sequence[Row], label: Callable[[Row], Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        found[row["item_id"]].append(label(row))
    return found


def choice_of(row: Row, rule: str) -> str:
    completion, quality = row["completion"], row["quality"]
    if rule == "mean":
        both = WORTH[completion] + WORTH[quality]
        return "first" if both > 1 else "second" if both < 1 else "same"
    if rule == "quality":
        return str(quality)
    return str(quality if rule == "completion_then_quality" and completion == "same" else completion)


def agreed(name: str, items: dict[str, list[Any]], *, opposed: bool) -> Row:
    both = [said for said in items.values() if len(said) > 1]
    labels = [label for said in both for label in said]
    pairs = [(a, b) for said in both for k, a in enumerate(said) for b in said[k + 1 :]]
    hard = sum(a != b and "same" not in (a, b) for a, b in pairs)
    return {
        "measure": name,
        "items": len(both),
        "pairs": len(pairs),
        "agreement": share(sum(a == b for a, b in pairs), len(pairs)),
        "chance": math.fsum((labels.count(v) / len(labels)) ** 2 for v in set(labels)) if labels else None,
        "hard_disagreement": share(hard, len(pairs)) if opposed else None,
        "bound": None,
    }


def rater_agreement(x: Data, table: Row) -> Row:
    given, rule = ratings_of(x), table["settings"]["combination"]
    panel = [r for r in given if r["form"] == "human_panel"]
    own = opinions([r for r in panel if r["purpose"] == "rating"], lambda r: bool(r["accept"]))
    pairs = [r for r in given if r["form"] == "pairwise" and r["purpose"] == "rating"]
    rows = [
        agreed("completion", own, opposed=False),
        agreed("pairs", opinions(pairs, lambda r: choice_of(r, rule)), opposed=True),
    ]
    for purpose in ("second_pass", "audit"):
        checks = [(bool(r["accept"]), own.get(r["item_id"], [])) for r in panel if r["purpose"] == purpose]
        decided = [(accept, 2 * sum(said) > len(said)) for accept, said in checks if 2 * sum(said) != len(said)]
        n, same_as = len(decided), sum(a == b for a, b in decided)
        bound = 1 - 0.05 ** (1 / n) if n and n == same_as else None
        rows.append({"measure": purpose, "items": n, "pairs": n, "agreement": share(same_as, n), "chance": None})
        rows[-1].update(hard_disagreement=None, bound=bound)
    return x.table(rows, len(given), {})

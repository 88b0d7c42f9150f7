"""How well forecasts put jobs in order and mean what they say."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from service.lifecycle.handover.verify_program.chance import Chance, divided, middle_95, times_drawn
from service.lifecycle.handover.verify_program.means import SKIPPED, numpy, share
from service.lifecycle.handover.verify_program.reading import Row
from service.lifecycle.handover.verify_program.regressions import chance_of, logit_of, regressed

Given = list[Any]
"""A forecast of each job; None where there is none."""
DRAWS = 2000


# --- order ----------------------------------------------------------------------------------------------------------------
def won_pairs(labels: Sequence[bool], scores: Sequence[float]) -> tuple[float, float]:
    """Pairs of an accepted and a rejected job that the accepted one wins, ties half, and all pairs."""
    levels: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for label, score in zip(labels, scores):
        levels[score][bool(label)] += 1
    won, below = 0.0, 0
    for _, (rejected, accepted) in sorted(levels.items()):
        won += accepted * (below + rejected / 2)
        below += rejected
    return won, float(below * (len(labels) - below))


def auc_of(labels: Sequence[bool], scores: Sequence[float]) -> Any:
    """J. A. Hanley, B. J. McNeil (1982)."""
    return share(*won_pairs(labels, scores))


def auc_within(labels: Sequence[bool], scores: Sequence[float], groups: Sequence[str]) -> Any:
    won = pairs = 0.0
    for name in set(groups):
        mine = [k for k, group in enumerate(groups) if group == name]
        w, p = won_pairs([labels[k] for k in mine], [scores[k] for k in mine])
        won, pairs = won + w, pairs + p
    return share(won, pairs)


def auc_drawn(labels: Sequence[bool], given: Given, seed: int, draws: int = DRAWS) -> Any:
    """AUC under each draw of all jobs, over those that have a forecast. Needs numpy."""
    known = [k for k, p in enumerate(given) if p is not None]
    order = sorted(known, key=lambda k: given[k])
    if not order:
        return numpy.full(draws if len(given) else 0, numpy.nan)
    starts = [n for n, k in enumerate(order) if n == 0 or given[k] != given[order[n - 1]]]
    held = numpy.asarray([labels[k] for k in order], dtype=float)
    found: list[Any] = []
    for start in range(0, draws, 250):
        times = times_drawn(len(given), draws, seed)[start : start + 250, order].astype(float)
        accepted = numpy.add.reduceat(times * held, starts, axis=1)
        rejected = numpy.add.reduceat(times * (1 - held), starts, axis=1)
        below = numpy.cumsum(rejected, axis=1) - rejected
        pairs = accepted.sum(axis=1) * rejected.sum(axis=1)
        found.append(divided((accepted * (below + rejected / 2)).sum(axis=1), pairs))
    return numpy.concatenate(found)


class Aucs:
    """Of several forecasters under the same draws."""

    def __init__(self, labels: Sequence[bool], given: dict[str, Given], seed: int) -> None:
        self.n = {name: sum(p is not None for p in one) for name, one in given.items()}
        self.value: dict[str, Any] = {}
        self.drawn: dict[str, Any] = {}
        for name, one in given.items():
            known = [k for k, p in enumerate(one) if p is not None]
            self.value[name] = auc_of([labels[k] for k in known], [one[k] for k in known])
            if numpy is not None:
                self.drawn[name] = auc_drawn(labels, one, seed)

    def mean(self, names: Sequence[str], against: Sequence[str] = ()) -> tuple[Any, Any, Any]:
        """Value and interval of a mean, or of how far it is above that of others."""
        values = [self.value[name] for name in (*names, *against)]
        value = None
        if None not in values:
            value = math.fsum(values[: len(names)]) / len(names)
            value -= math.fsum(values[len(names) :]) / len(against) if against else 0.0
        if numpy is None:
            end = SKIPPED if self.n[names[0]] else None
            return value, end, end
        drawn = sum(self.drawn[name] for name in names) / len(names)
        if against:
            drawn = drawn - sum(self.drawn[name] for name in against) / len(against)
        return value, *middle_95(drawn)


def of_all(labels: Sequence[bool], given: dict[str, Given]) -> tuple[list[bool], dict[str, Given]]:
    """Labels and forecasts of the jobs that everybody has."""
    both = [k for k in range(len(labels)) if all(one[k] is not None for one in given.values())]
    return [labels[k] for k in both], {name: [one[k] for k in both] for name, one in given.items()}


def ranked(values: Sequence[float]) -> list[float]:
    """Ranks from 1, equal values with the mean of their places."""
    return [sum(v < w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]


def top_rate(labels: Sequence[bool], scores: Sequence[float], part: float, seed: int) -> Row:
    """Acceptance among the highest, ties at random twenty times; the band of as many drawn at random."""
    n = len(labels)
    if not n:
        return {"jobs": 0, "accepted": None, "band_low": None, "band_high": None}
    size, chance = min(n, max(1, int(part * n + 0.5))), Chance(seed)
    rates: list[float] = []
    for _ in range(20):
        tie = [chance.random() for _ in range(n)]
        first = sorted(range(n), key=lambda k: (-scores[k], tie[k]))[:size]
        rates.append(sum(labels[k] for k in first) / size)
    found: Row = {"jobs": size, "accepted": math.fsum(rates) / 20, "band_low": SKIPPED, "band_high": SKIPPED}
    if numpy is not None:
        drawer, accepted = numpy.random.default_rng(seed), sum(labels)
        drawer.random(20 * n)
        rest = drawer.hypergeometric(accepted, n - accepted, size, size=2000) / size
        found["band_low"], found["band_high"] = map(float, numpy.quantile(rest, [0.025, 0.975]))
    return found


# --- meaning --------------------------------------------------------------------------------------------------------------
def ece_of(labels: Sequence[bool], scores: Sequence[float]) -> Any:
    """Expected calibration error, ten bins of equal width; 1 belongs to the last."""
    gaps: dict[int, float] = defaultdict(float)
    for label, p in zip(labels, scores):
        gaps[min(9, math.floor(p * 10))] += p - label
    return share(math.fsum(map(abs, gaps.values())), len(labels))


def claims(labels: Sequence[bool], scores: Sequence[float], seed: int) -> Row:
    """Mean forecast, rate, overclaim and ECE, with intervals."""
    n, said, came = len(labels), math.fsum(scores), sum(labels)
    found: Row = {"claim": share(said, n), "rate": share(came, n), "overclaim": share(said, came)}
    found["ece"] = ece_of(labels, scores)
    for name in ("claim", "overclaim", "ece"):
        found[f"{name}_low"] = found[f"{name}_high"] = SKIPPED if n else None
    if numpy is None or not n:
        return found
    times = times_drawn(n, DRAWS, seed).astype(float)
    p, y = numpy.asarray(scores, dtype=float), numpy.asarray(labels, dtype=float)
    claimed, whole = times @ p, times.sum(axis=1)
    gap = sum(
        abs(times[:, mine] @ (p - y)[mine])
        for k in range(10)
        if (mine := [j for j, v in enumerate(scores) if min(9, math.floor(v * 10)) == k])
    )
    for name, top, bottom in (("claim", claimed, whole), ("overclaim", claimed, times @ y), ("ece", gap, whole)):
        found[f"{name}_low"], found[f"{name}_high"] = middle_95(divided(top, bottom))
    return found


def recalibrated(labels: Sequence[bool], scores: Sequence[float], seed: int) -> tuple[Any, Any]:
    """J. Platt (1999): fitted on 100 jobs, scored on the rest, mean of 20 splits. ECE and accuracy."""
    n, chance = len(labels), Chance(seed)
    given = [logit_of(p) for p in scores]
    errors: list[float] = []
    right: list[float] = []
    for _ in range(20 if n > 100 else 0):
        order = chance.permutation(n)
        mine, rest = order[:100], order[100:]
        fitted = [labels[k] for k in mine]
        if all(fitted) or not any(fitted):
            continue
        beta = regressed([[given[k] for k in mine]], fitted, 1e-4)[0]
        said = [chance_of(beta[0] + beta[1] * given[k]) for k in rest]
        errors.append(ece_of([labels[k] for k in rest], said))
        right.append(sum((p >= 0.5) == labels[k] for p, k in zip(said, rest)) / len(rest))
    return share(math.fsum(errors), len(errors)), share(math.fsum(right), len(right))

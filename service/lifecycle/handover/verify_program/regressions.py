"""Logistic regressions, cross-fitted ones, and what repeated attempts say of chance."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from service.lifecycle.handover.verify_program.chance import Chance
from service.lifecycle.handover.verify_program.labor import solved_for
from service.lifecycle.handover.verify_program.means import numpy
from service.lifecycle.handover.verify_program.reading import Row

Columns = dict[str, list[float]]


def logit_of(p: float) -> float:
    p = min(0.999, max(0.001, p))
    return math.log(p) - math.log1p(-p)


def chance_of(linear: float) -> float:
    return 1 / (1 + math.exp(-min(700.0, max(-700.0, linear))))


def dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(map(float.__mul__, first, second))


def bent(rows: Sequence[Sequence[float]], weights: Sequence[float]) -> list[list[float]]:
    """X'WX; ``rows`` are the columns of X."""
    if numpy is not None:
        given = numpy.asarray(rows, dtype=float)
        found: list[list[float]] = ((given * numpy.asarray(weights)) @ given.T).tolist()
        return found
    scaled = [list(map(float.__mul__, row, weights)) for row in rows]
    half = [[dot(one, rows[k]) for k in range(n + 1)] for n, one in enumerate(scaled)]
    return [[half[max(i, j)][min(i, j)] for j in range(len(rows))] for i in range(len(rows))]


def lost(linear: Sequence[float], labels: Sequence[bool], beta: Sequence[float], ridge: float) -> float:
    soft = (max(v, 0.0) + math.log1p(math.exp(-abs(v))) - v * y for v, y in zip(linear, labels))
    return math.fsum(soft) + ridge / 2 * math.fsum(b * b for b in beta[1:])


def regressed(columns: Sequence[Sequence[float]], labels: Sequence[bool], ridge: float) -> tuple[list[float], Any]:
    """Coefficients of a logistic regression, the constant first, and their standard errors where they mean something.

    Newton's steps, halved until they are none for the worse; ridge on all but the constant. Without errors and with None for them
    where classes are told apart without an error: no largest likelihood exists.
    """
    rows = [[1.0] * len(labels), *(list(map(float, column)) for column in columns)]
    beta = [0.0] * len(rows)
    linear = [0.0] * len(labels)
    loss = lost(linear, labels, beta, ridge)
    for _ in range(200):
        p = [chance_of(v) for v in linear]
        off = [y - q for y, q in zip(labels, p)]
        slope = [dot(row, off) - (ridge * b if k else 0.0) for k, (row, b) in enumerate(zip(rows, beta))]
        bend = bent(rows, [q * (1 - q) for q in p])
        for k in range(len(rows)):
            bend[k][k] += ridge if k else 0.0
        move = solved_for(bend, slope)
        part = 1.0
        while part > 1e-9:
            there = [b + part * m for b, m in zip(beta, move)]
            linear_there = predicted(rows, there)
            loss_there = lost(linear_there, labels, there, ridge)
            if loss_there <= loss:
                break
            part /= 2
        else:
            break
        gained, beta, linear, loss = loss - loss_there, there, linear_there, loss_there
        if gained < 1e-13 * (1 + loss) or max(map(abs, linear)) > 40 + 1e9 * ridge:
            break
    if ridge or max(map(abs, linear)) >= 15:
        return beta, None
    bend = bent(rows, [q * (1 - q) for q in map(chance_of, linear)])
    units = [[float(j == k) for j in range(len(rows))] for k in range(len(rows))]
    return beta, [math.sqrt(solved_for(bend, unit)[k]) for k, unit in enumerate(units)]


def predicted(rows: Sequence[Sequence[float]], beta: Sequence[float]) -> list[float]:
    if numpy is not None:
        found: list[float] = (numpy.asarray(beta) @ numpy.asarray(rows, dtype=float)).tolist()
        return found
    return [dot(beta, row) for row in zip(*rows)]


def spread_of(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


def crossed(columns: Columns, labels: Sequence[bool], seed: int) -> list[float]:
    """Forecasts of regressions that were fitted on the other four of five folds, ridge 1, nine digits."""
    n, order = len(labels), Chance(seed).permutation(len(labels))
    said = [0.0] * n
    start = 0
    for fold in range(5):
        end = start + n // 5 + (fold < n % 5)
        mine, rest = order[start:end], sorted({*range(n)} - {*order[start:end]})
        start = end
        fitted = [labels[k] for k in rest]
        if all(fitted) or not any(fitted):
            for k in mine:
                said[k] = float(fitted[0])
            continue
        shapes = [spread_of([column[k] for k in rest]) for column in columns.values()]
        scaled = [
            [(v - mean) / wide if wide > 1e-9 * (1 + abs(mean)) else 0.0 for v in column]
            for column, (mean, wide) in zip(columns.values(), shapes)
        ]
        beta, _ = regressed([[column[k] for k in rest] for column in scaled], fitted, 1.0)
        linear = predicted([[1.0] * n, *scaled], beta)
        for k in mine:
            said[k] = round(chance_of(linear[k]), 9)
    return said


def independent(columns: Columns) -> list[str]:
    """Names of columns that are no combination of earlier ones and a constant (J. P. Gram, E. Schmidt)."""
    n = len(next(iter(columns.values()))) if columns else 0
    basis = [[1 / math.sqrt(n)] * n] if n else []
    kept: list[str] = []
    for name, column in columns.items():
        left = list(map(float, column))
        size = math.sqrt(dot(left, left))
        for _ in range(2):
            for one in basis:
                part = dot(one, left)
                left = [v - part * w for v, w in zip(left, one)]
        length = math.sqrt(dot(left, left))
        if length > 1e-8 * max(1.0, size):
            basis.append([v / length for v in left])
            kept.append(name)
    return kept


def terms_of(columns: Columns, labels: Sequence[bool]) -> list[Row]:
    """Coefficients with Wald's p; null where they have none."""
    kept = independent(columns)
    beta, errors = regressed([columns[name] for name in kept], labels, 0.0)
    found: list[Row] = []
    for name in ["constant", *columns]:
        k = 0 if name == "constant" else kept.index(name) + 1 if name in kept else None
        row: Row = dict.fromkeys(("beta", "error", "p"))
        if k is not None and errors is not None:
            row = {"beta": beta[k], "error": errors[k], "p": math.erfc(abs(beta[k] / errors[k]) / math.sqrt(2))}
        found.append({"term": name, **row})
    return found


# --- chance ---------------------------------------------------------------------------------------------------------------
def lowest(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a curve with one lowest point has it: thirds."""
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if of(left) < of(right) else (left, high)
    return (low + high) / 2


def betas(counts: Sequence[tuple[int, int]]) -> Any:
    """Most likely beta-binomial of (accepted, attempts): (a, b); nothing where all attempts came to the same."""
    accepted, attempts = sum(k for k, _ in counts), sum(n for _, n in counts)
    if accepted in (0, attempts) or all(n < 2 for _, n in counts):
        return None
    kinds: dict[tuple[int, int], int] = defaultdict(int)
    for one in counts:
        kinds[one] += 1

    def tilt(size: float, mean: float) -> float:
        """Slope of the likelihood in the mean: it falls."""
        a, b = size * mean, size * (1 - mean)
        return math.fsum(
            times * (sum(1 / (a + i) for i in range(k)) - sum(1 / (b + i) for i in range(n - k)))
            for (k, n), times in kinds.items()
        )

    def mean_of(size: float) -> float:
        low, high = 1e-6, 1 - 1e-6
        for _ in range(60):
            half = (low + high) / 2
            low, high = (half, high) if tilt(size, half) > 0 else (low, half)
        return (low + high) / 2

    def unlikely(log_size: float) -> float:
        size = math.exp(log_size)
        a = size * mean_of(size)
        b = size - a
        return -math.fsum(
            times
            * (
                math.fsum(math.log(a + i) for i in range(k))
                + math.fsum(math.log(b + i) for i in range(n - k))
                - math.fsum(math.log(size + i) for i in range(n))
            )
            for (k, n), times in kinds.items()
        )

    size = math.exp(lowest(unlikely, math.log(1e-3), math.log(1e6)))
    mean = mean_of(size)
    return size * mean, size * (1 - mean)


def oracle(a: float, b: float) -> float:
    """AUC of who knows each job's chance, Beta(a, b), for one attempt: an integral over the chance's logit."""
    middle, steps = math.log(a / b), 8000
    at = [middle + 40 * (2 * (k + 0.5) / steps - 1) for k in range(steps)]
    soft = [max(-v, 0.0) + math.log1p(math.exp(-abs(v))) for v in at]
    logs = [-(a * s + b * (s + v)) for s, v in zip(soft, at)]
    accepted, rejected = (
        normed([g - s for g, s in zip(logs, soft)]),
        normed([g - s - v for g, s, v in zip(logs, soft, at)]),
    )
    won = below = 0.0
    for up, down in zip(accepted, rejected):
        won += up * (below + down / 2)
        below += down
    return won


def normed(logs: Sequence[float]) -> list[float]:
    most = max(logs)
    found = [math.exp(v - most) for v in logs]
    total = math.fsum(found)
    return [v / total for v in found]

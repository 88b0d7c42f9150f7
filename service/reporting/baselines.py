"""What forecasts must beat: regressions on what is known of a job beforehand, cross-fitted, and forecasts put together (A21).

Columns are made by the caller: dummies of categories, numbers of metadata, annotations, embeddings of the text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.reporting.calibration import CLIP
from service.reporting.drawing import Bools, Floats
from service.reporting.logistic import fit, logit

FOLDS = 5
RIDGE = 1.0
"""Penalty of cross-fitted regressions, on standardised columns: embeddings have more columns than there are jobs."""

DIGITS = 9
STILL = 1e-9
"""A column whose spread is less than this share of its size does not vary."""
DEPENDENT = 1e-8


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    beta: float | None
    """Null for a column that is a combination of earlier ones, and where the fit does not come to an end (classes told apart
    without an error)."""
    error: float | None
    """Standard error; null as ``beta`` is."""
    p: float | None
    """Two-sided, Wald; null as ``beta`` is."""


def regression(columns: Mapping[str, Floats], labels: Bools) -> list[Term]:
    """Return the terms of a logistic regression of acceptance on the columns, the constant first, without a penalty.

    Raises ValueError without jobs, or for unequal lengths.
    """
    whole = _matrix(columns, len(labels))
    kept = independent(whole)
    found = fit(whole[:, kept], labels)
    place = {name: 1 + kept.index(n) for n, name in enumerate(columns) if n in kept} | {"constant": 0}
    if found.errors is None or not found.converged:
        return [Term(name, None, None, None) for name in ("constant", *columns)]
    p = found.p_values()
    return [
        Term(name, float(found.beta[at]), float(found.errors[at]), p[at])
        if (at := place.get(name)) is not None
        else Term(name, None, None, None)
        for name in ("constant", *columns)
    ]


def independent(given: Floats) -> list[int]:
    """Return the places of columns that are no combination of a constant and of earlier ones."""
    n = len(given)
    basis = np.full((1, n), 1 / np.sqrt(n)) if n else np.empty((0, 0))
    kept: list[int] = []
    for place in range(given.shape[1]):
        left = given[:, place]
        for _ in range(2):
            left = left - basis.T @ (basis @ left)
        length = float(np.linalg.norm(left))
        if length > DEPENDENT * max(1.0, float(np.linalg.norm(given[:, place]))):
            basis = np.vstack([basis, left / length])
            kept.append(place)
    return kept


def cross_fitted(columns: Mapping[str, Floats], labels: Bools, seed: int, folds: int = FOLDS) -> Floats:
    """Return for each job the forecast of a regression that was fitted on the other folds alone.

    Folds are of equal size, drawn by the seed. Columns are standardised on the fitted folds; constant ones count for nothing.
    Where all fitted jobs are of one class, their rate is the forecast. Rounded to nine digits, so that what is equal is a tie for
    whoever computes it. Raises ValueError for fewer jobs than folds.
    """
    n = len(labels)
    if n < folds:
        raise ValueError(f"{folds} folds need as many jobs")
    given, said = _matrix(columns, n), np.empty(n)
    for mine in np.array_split(np.random.default_rng(seed).permutation(n), folds):
        rest = np.setdiff1d(np.arange(n), mine)
        middle, spread = given[rest].mean(axis=0), given[rest].std(axis=0)
        varies = spread > STILL * (1 + np.abs(middle))
        scaled = np.where(varies, (given - middle) / np.where(varies, spread, 1.0), 0.0)
        if labels[rest].all() or not labels[rest].any():
            said[mine] = labels[rest].mean()
        else:
            said[mine] = fit(scaled[rest], labels[rest], ridge=RIDGE).predict(scaled[mine])
    return np.round(said, DIGITS)


def dummies(values: Sequence[str | None], prefix: str) -> dict[str, Floats]:
    """Return a column of 0 and 1 for every value but the most frequent (of equals the first by name); null is a value."""
    texts = np.asarray(["" if value is None else value for value in values], dtype=object)
    names = sorted(set(texts), key=lambda name: (-int((texts == name).sum()), name))
    return {f"{prefix}={name or 'unknown'}": (texts == name).astype(np.float64) for name in names[1:]}


def numbers(values: Sequence[float | None], name: str) -> dict[str, Floats]:
    """Return a column with the mean in place of what is not known, and one that says so where anything is not."""
    given = np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)
    unknown = np.isnan(given)
    middle = float(given[~unknown].mean()) if not unknown.all() else 0.0
    columns = {name: np.where(unknown, middle, given)}
    return columns | ({f"{name} unknown": unknown.astype(np.float64)} if unknown.any() else {})


def embeddings(vectors: Floats) -> dict[str, Floats]:
    """Return the columns of given vectors (jobs, dimensions)."""
    return {f"e{place}": vectors[:, place] for place in range(vectors.shape[1])}


def noise(n: int, columns: int, seed: int) -> dict[str, Floats]:
    """Return columns that know nothing: what a baseline with as many columns has by chance."""
    drawn = np.random.default_rng(seed).random((n, columns))
    return {f"noise{place}": drawn[:, place] for place in range(columns)}


def stacked(scores: Mapping[str, Floats], labels: Bools, seed: int) -> Floats:
    """Return cross-fitted forecasts of a regression on the logits of the forecasters, clipped to [0.001, 0.999]."""
    columns = {name: logit(np.clip(one, CLIP, 1 - CLIP)) for name, one in scores.items()}
    return cross_fitted(columns, labels, seed)


def averaged(scores: Mapping[str, Floats]) -> Floats:
    """Return the mean of the forecasters' forecasts of each job; those that have none of it are left out, nan without any."""
    table = np.asarray([*scores.values()], dtype=np.float64)
    known = ~np.isnan(table)
    count = known.sum(axis=0)
    return np.divide(np.where(known, table, 0).sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0)


Rule = tuple[float, Callable[[Floats], Bools]]
"""Points, and of which values of the column."""


def hand_rule(columns: Mapping[str, Floats], rules: Mapping[str, Rule]) -> Floats:
    """Return each job's points by a rule written by hand: the points of every condition that holds. Raises KeyError."""
    n = len(next(iter(columns.values()))) if columns else 0
    points = np.zeros(n)
    for name, (worth, holds) in rules.items():
        points += worth * holds(columns[name])
    return points


def _matrix(columns: Mapping[str, Floats], n: int) -> Floats:
    if any(len(one) != n for one in columns.values()):
        raise ValueError("every column needs a value of every job")
    return np.column_stack([*columns.values()]) if columns else np.empty((n, 0))

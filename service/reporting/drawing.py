"""Resamplings of jobs as weights: one row says how often each job was drawn, so that many figures see the same draws.

B. Efron, R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 6 and 13: percentiles 2.5 and 97.5.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
DRAWS = 2000
PIECE = 250
"""Draws that are looked at together: bounds memory."""
MOST_KEPT = 4_000_000
"""Counts of one resampling that are kept for the next figure over the same jobs, two bytes each."""


def weights(n: int, draws: int, seed: int, groups: Sequence[str] | None = None) -> Iterator[Floats]:
    """Yield pieces of (draws, n): how often each of ``n`` jobs was drawn. With ``groups``, each group is drawn within itself.

    The same arguments give the same draws. Nothing for n = 0.
    """
    within = None if groups is None else tuple(groups)
    if n * draws > MOST_KEPT or n > np.iinfo(np.uint16).max:
        yield from _drawn(n, draws, seed, within)
        return
    kept = _kept(n, draws, seed, within)
    for start in range(0, draws if n else 0, PIECE):
        yield kept[start : start + PIECE].astype(np.float64)


@lru_cache(maxsize=4)
def _kept(n: int, draws: int, seed: int, groups: tuple[str, ...] | None) -> NDArray[np.uint16]:
    """Return all pieces: most figures of a report are over the same jobs, and drawing takes longer than they do."""
    pieces = [piece.astype(np.uint16) for piece in _drawn(n, draws, seed, groups)]
    return np.concatenate(pieces) if pieces else np.empty((0, n), dtype=np.uint16)


def _drawn(n: int, draws: int, seed: int, groups: tuple[str, ...] | None) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    members = [np.arange(n)] if groups is None else members_of(groups)
    for start in range(0, draws if n else 0, PIECE):
        count = min(PIECE, draws - start)
        piece = np.zeros((count, n))
        for mine in members:
            piece[:, mine] = rng.multinomial(len(mine), np.full(len(mine), 1 / len(mine)), size=count)
        yield piece


def members_of(groups: Sequence[str]) -> list[Indices]:
    """Return the places of each group's members, groups by name."""
    names = np.asarray(groups, dtype=object)
    return [np.flatnonzero(names == name) for name in sorted(set(groups))]


def interval(drawn: Floats) -> tuple[float, float] | None:
    """Return the 95 % percentile interval; None where fewer than two draws have a value."""
    known = drawn[~np.isnan(drawn)]
    if len(known) < 2:
        return None
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def ratio(top: Floats, bottom: Floats) -> Floats:
    """Divide; nan where there is nothing to divide by."""
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)


def plain(value: float) -> float | None:
    """Return a figure for people: None where it is undefined."""
    return None if np.isnan(value) else float(value)

"""Whether forecasters fit judges of their own family better than others: what is left of a table of AUCs without its margins."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import Bools, Floats, interval, plain, weights
from service.reporting.ranking import Ranked

DRAWS = 500


def double_centred(table: Floats) -> Floats:
    """Return the residuals of rows and columns: a cell less its row's and its column's mean, plus the mean of all.

    J. W. Tukey, "Exploratory Data Analysis" (1977), chapter 11, with means. nan anywhere makes all of it nan.
    """
    return (
        table
        - table.mean(axis=-1, keepdims=True)
        - table.mean(axis=-2, keepdims=True)
        + table.mean(axis=(-2, -1), keepdims=True)
    )


@dataclass(frozen=True)
class OwnFamily:
    forecasters: tuple[str, ...]
    judges: tuple[str, ...]
    table: Floats
    """AUC, (forecasters, judges)."""
    residuals: Floats
    own: float | None
    """Mean residual of the cells whose forecaster and judge are of one family; above 0 speaks for a bias."""
    interval: tuple[float, float] | None
    cells: int
    """Of one family."""


def own_family(
    labels: Mapping[str, Bools],
    scores: Mapping[str, Floats],
    families: Mapping[str, str],
    seed: int,
    draws: int = DRAWS,
) -> OwnFamily:
    """Return the residuals of the AUC of every forecaster under every judge's labels, and the mean of the family's own cells.

    Everybody's jobs are the same, without gaps; 500 resamples of jobs. ``families`` has names of forecasters and of judges;
    who is not in it is of none. Raises ValueError for unequal lengths.
    """
    forecasters, judges = tuple(scores), tuple(labels)
    ranked = [[Ranked(labels[judge], scores[name]) for judge in judges] for name in forecasters]
    mine = np.asarray([[_same(families, name, judge) for judge in judges] for name in forecasters], dtype=np.bool_)
    n = len(next(iter(scores.values()))) if scores else 0
    table = _aucs(ranked, np.ones((1, n)))[0]
    cells = int(mine.sum())
    if not cells:
        return OwnFamily(forecasters, judges, table, double_centred(table), None, None, 0)
    drawn = [double_centred(_aucs(ranked, piece))[:, mine].mean(axis=1) for piece in weights(n, draws, seed)]
    residuals = double_centred(table)
    band = interval(np.concatenate(drawn)) if drawn else None
    return OwnFamily(forecasters, judges, table, residuals, plain(float(residuals[mine].mean())), band, cells)


def _aucs(ranked: list[list[Ranked]], drawn: Floats) -> Floats:
    """Return (draws, forecasters, judges)."""
    return np.stack([np.stack([one.auc(drawn) for one in row], axis=-1) for row in ranked], axis=1)


def _same(families: Mapping[str, str], one: str, other: str) -> bool:
    return one in families and families[one] == families.get(other)

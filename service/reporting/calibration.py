"""Whether forecasts mean what they say. Probabilities are 0 to 1; None where a figure is undefined."""

from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import DRAWS, Bools, Floats, interval, plain, ratio, weights
from service.reporting.forecast_auc import Estimate
from service.reporting.logistic import fit, logit

BINS = 10
PLATT_FITTED, PLATT_SPLITS = 100, 20
CLIP = 0.001
"""Forecasts of 0 and 1 are taken for this, and for 1 less this, where a logit is needed."""
RIDGE = 1e-4
"""Penalty on Platt's slope: 100 jobs may be told apart without an error, and then there is no largest likelihood."""


def bin_of(forecasts: Floats, bins: int = BINS) -> Floats:
    """Return the bin of equal width of each forecast, from 0; 1.0 belongs to the last one."""
    return np.minimum(np.floor(forecasts * bins), bins - 1)


def ece(labels: Bools, forecasts: Floats, bins: int = BINS) -> float | None:
    """Return the expected calibration error Σ n_b/n · |mean p - mean y| over bins of equal width; None without jobs.

    M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015.
    """
    return plain(float(_eces(labels, forecasts, np.ones((1, len(labels))), bins)[0]))


def _eces(labels: Bools, forecasts: Floats, drawn: Floats, bins: int = BINS) -> Floats:
    placed = (bin_of(forecasts, bins)[:, None] == np.arange(bins)) * (forecasts - labels)[:, None]
    return ratio(np.abs(drawn @ placed).sum(axis=1), drawn.sum(axis=1))


@dataclass(frozen=True, slots=True)
class Claim:
    """What forecasts claim, against what came true."""

    mean: Estimate
    """Mean forecast."""
    rate: float | None
    """Share of accepted jobs."""
    overclaim: Estimate
    """Mean forecast / acceptance rate; undefined where nothing was accepted."""
    ece: Estimate


def claim(labels: Bools, forecasts: Floats, seed: int, draws: int = DRAWS) -> Claim:
    """Return mean, overclaim and ECE with 95 % percentile intervals of a bootstrap over jobs."""
    found = [_claims(labels, forecasts, piece) for piece in weights(len(labels), draws, seed)]
    drawn = [np.concatenate(part) for part in zip(*found, strict=True)] if found else [np.empty(0)] * 3
    whole = [float(one[0]) for one in _claims(labels, forecasts, np.ones((1, len(labels))))]
    mean, over, error = (
        Estimate(len(labels), plain(value), interval(part)) for value, part in zip(whole, drawn, strict=True)
    )
    return Claim(mean, float(labels.mean()) if len(labels) else None, over, error)


def _claims(labels: Bools, forecasts: Floats, drawn: Floats) -> tuple[Floats, Floats, Floats]:
    claimed, came = drawn @ forecasts, drawn @ labels.astype(np.float64)
    return ratio(claimed, drawn.sum(axis=1)), ratio(claimed, came), _eces(labels, forecasts, drawn)


@dataclass(frozen=True, slots=True)
class Platt:
    """Of the splits that could be fitted."""

    splits: int
    """Of 20; a split whose fitted jobs are of one class only is left out."""
    ece: float | None
    accuracy: float | None
    """At 0.5."""


def platt(labels: Bools, forecasts: Floats, seed: int, fitted: int = PLATT_FITTED, splits: int = PLATT_SPLITS) -> Platt:
    """Return what recalibration makes of the forecasts, mean over splits: fitted on some jobs, scored on the rest.

    J. Platt, "Probabilistic outputs for support vector machines …", Advances in Large Margin Classifiers (1999): logistic
    regression of the label on logit(p), here clipped to [0.001, 0.999]. None with no more jobs than are fitted.
    """
    rng, n = np.random.default_rng(seed), len(labels)
    given = logit(np.clip(forecasts, CLIP, 1 - CLIP))[:, None]
    errors: list[float] = []
    right: list[float] = []
    for _ in range(splits if n > fitted else 0):
        order = rng.permutation(n)
        mine, rest = order[:fitted], order[fitted:]
        if labels[mine].all() or not labels[mine].any():
            continue
        said = fit(given[mine], labels[mine], ridge=RIDGE).predict(given[rest])
        errors.append(float(_eces(labels[rest], said, np.ones((1, len(rest))))[0]))
        right.append(float(((said >= 0.5) == labels[rest]).mean()))
    if not errors:
        return Platt(0, None, None)
    return Platt(len(errors), float(np.mean(errors)), float(np.mean(right)))

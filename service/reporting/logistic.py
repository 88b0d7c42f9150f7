"""Logistic regression by Newton's method, with standard errors: for the regressions and baselines of forecasts."""

import math
from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import Bools, Floats

ROUNDS = 100
CLOSE = 1e-13
"""Of the loss: so near that another program comes to the same digits."""
_MOST = 15.0
"""Linear predictors of a fit that has an end; where classes are told apart without an error they grow beyond it."""


@dataclass(frozen=True)
class Fit:
    beta: Floats
    """The constant first."""
    errors: Floats | None
    """Standard errors; None with a penalty, or where the information cannot be inverted."""
    converged: bool
    """False too where classes are told apart without an error: then no largest likelihood exists."""

    def predict(self, given: Floats) -> Floats:
        return _probability(self.beta[0] + given @ self.beta[1:])

    def p_values(self) -> list[float | None]:
        """Return two-sided p of β = 0 by Wald's z; None where there is no standard error or no convergence."""
        if self.errors is None or not self.converged:
            return [None] * len(self.beta)
        return [
            math.erfc(abs(b / e) / math.sqrt(2)) if e > 0 else None for b, e in zip(self.beta, self.errors, strict=True)
        ]


def fit(given: Floats, labels: Bools, ridge: float = 0.0) -> Fit:
    """Return the fit of P(label) = 1 / (1 + exp(-(β₀ + x·β))) for ``given`` (jobs, columns).

    Iteratively reweighted least squares: P. McCullagh, J. Nelder, "Generalized Linear Models" (1989), chapter 4. ``ridge`` is
    the penalty ½·ridge·|β|² on all but the constant. Raises ValueError without jobs, or for unequal lengths.
    """
    n = len(labels)
    if n == 0 or given.shape[:1] != (n,):
        raise ValueError("every job needs a label and a row")
    x, y = np.column_stack([np.ones(n), given]), labels.astype(np.float64)
    penalty = np.full(x.shape[1], ridge)
    penalty[0] = 0.0
    beta = np.zeros(x.shape[1])
    loss, converged = _loss(x, y, beta, penalty), False
    for _ in range(ROUNDS):
        step = _step(x, y, beta, penalty)
        beta, better = _moved(x, y, beta, penalty, step, loss)
        converged, loss = loss - better < CLOSE * (1 + abs(loss)), better
        if converged:
            break
    fine = converged and (ridge > 0 or float(np.abs(x @ beta).max()) < _MOST)
    return Fit(beta, None if ridge else _errors(x, beta), fine)


def _step(x: Floats, y: Floats, beta: Floats, penalty: Floats) -> Floats:
    p = _probability(x @ beta)
    slope = x.T @ (y - p) - penalty * beta
    bend = _information(x, p) + np.diag(penalty)
    if penalty[1:].all():
        return np.asarray(np.linalg.solve(bend, slope), dtype=np.float64)
    return np.asarray(np.linalg.lstsq(bend, slope, rcond=None)[0], dtype=np.float64)


def _moved(x: Floats, y: Floats, beta: Floats, penalty: Floats, step: Floats, loss: float) -> tuple[Floats, float]:
    """Go as much of the step as makes things better: all, half, a quarter …"""
    for halving in range(30):
        there = beta + step / (1 << halving)
        found = _loss(x, y, there, penalty)
        if found <= loss:
            return there, found
    return beta, loss


def _loss(x: Floats, y: Floats, beta: Floats, penalty: Floats) -> float:
    linear = x @ beta
    return float((np.logaddexp(0, linear) - y * linear).sum() + (penalty * beta * beta).sum() / 2)


def _information(x: Floats, p: Floats) -> Floats:
    return (x * (p * (1 - p))[:, None]).T @ x


def _errors(x: Floats, beta: Floats) -> Floats | None:
    information = _information(x, _probability(x @ beta))
    if np.linalg.matrix_rank(information) < len(beta):
        return None
    return np.sqrt(np.diag(np.linalg.inv(information)))


def _probability(linear: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(linear, -700, 700)))


def logit(p: Floats) -> Floats:
    """Return log(p / (1 - p)); p within (0, 1)."""
    return np.log(p) - np.log1p(-p)

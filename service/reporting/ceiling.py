"""How well anybody could forecast: what repeated attempts at the same jobs say of chance (a beta-binomial model)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from service.reporting.drawing import Bools, Floats
from service.reporting.ranking import auc

STEPS = 4000
"""Of the midpoint rule in which integrals over a job's chance are taken."""
MOST = 1e6
"""Largest a + b that is looked for: there all jobs have the same chance."""
_LEAST = 1e-3
_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class BetaBinomial:
    """Chances of jobs, as Beta(a, b)."""

    a: float
    b: float
    jobs: int

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def alike(self) -> float:
        """Correlation of two attempts at one job: 1 / (a + b + 1)."""
        return 1 / (self.a + self.b + 1)


def fit(counts: Sequence[tuple[int, int]]) -> BetaBinomial | None:
    """Return the most likely beta-binomial of (accepted, attempts) per job.

    J. G. Skellam, "A probability distribution derived from the binomial distribution by regarding the probability of success as
    variable", JRSS B 10 (1948), 257-261. The mean is that of all attempts' accepted ones as it maximises together with a + b,
    both by golden-section search. None where no job has two attempts, or all attempts came to the same. Raises ValueError.
    """
    if any(not 0 <= k <= n or n == 0 for k, n in counts):
        raise ValueError("accepted attempts are some of the attempts")
    accepted, attempts = sum(k for k, _ in counts), sum(n for _, n in counts)
    if not any(n > 1 for _, n in counts) or accepted in (0, attempts):
        return None
    kinds, times = np.unique(np.asarray(counts), axis=0, return_counts=True)

    def loss(middle: float, log_size: float) -> float:
        size = math.exp(log_size)
        a, b = middle * size, (1 - middle) * size
        return -sum(t * (_log_beta(k + a, n - k + b) - _log_beta(a, b)) for (k, n), t in zip(kinds, times, strict=True))

    middle, log_size = accepted / attempts, 0.0
    for _ in range(8):
        log_size = _lowest(partial(loss, middle), math.log(_LEAST), math.log(MOST))
        middle = _lowest(partial(loss, log_size=log_size), 1e-6, 1 - 1e-6)
    size = math.exp(log_size)
    return BetaBinomial(middle * size, (1 - middle) * size, len(counts))


def oracle_auc(model: BetaBinomial) -> float:
    """Return the AUC of who knows every job's chance, for the label of one attempt: no forecast of one attempt does better.

    P(X > Y) + ½·P(X = Y) with X ~ Beta(a + 1, b) (chances of accepted attempts) and Y ~ Beta(a, b + 1), by the midpoint rule
    over quantiles of the logit, so that chances near 0 and 1 count as well.
    """
    middle = math.log(model.a / model.b)
    reach = 40.0
    at = middle + reach * (2 * (np.arange(STEPS) + 0.5) / STEPS - 1)
    log_p, log_q = -np.logaddexp(0, -at), -np.logaddexp(0, at)
    density = model.a * log_p + model.b * log_q  # of the logit of a Beta: its own p(1 - p) included
    accepted, rejected = _normed(density + log_p), _normed(density + log_q)
    below = np.cumsum(rejected) - rejected / 2
    return float((accepted * below).sum())


def ceiling(attempts: Sequence[Sequence[bool]]) -> float | None:
    """Return the AUC of the mean of a job's first two attempts as a forecast of its third; None without both classes.

    Jobs with fewer than three attempts are left out.
    """
    whole = [one for one in attempts if len(one) >= 3]
    if not whole:
        return None
    labels: Bools = np.asarray([one[2] for one in whole], dtype=np.bool_)
    return auc(labels, np.asarray([(one[0] + one[1]) / 2 for one in whole], dtype=np.float64))


def _normed(logs: Floats) -> Floats:
    found = np.exp(logs - logs.max())
    return found / found.sum()


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _lowest(of: Callable[[float], float], low: float, high: float) -> float:
    """Return where a curve with one lowest point has it (J. Kiefer, Proc. AMS 4 (1953), 502-506)."""
    share = (math.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = of(left), of(right)
    for _ in range(_ROUNDS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = of(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = of(right)
    return (low + high) / 2

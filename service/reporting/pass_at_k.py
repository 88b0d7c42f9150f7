"""Several samples of a task: solved at least once, every time, and by anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, fsum

import polars as pl


@dataclass(frozen=True, slots=True)
class PassAtK:
    k: int
    tasks: int
    """With at least k samples: what the figures rest on."""
    left_out: int
    """Tasks with fewer."""
    any: float | None
    """pass@k: at least one of k samples passes."""
    all: float | None
    """pass^k: each of k samples passes."""


def any_of(n: int, passed: int, k: int) -> float:
    """Return the chance that k of n samples, drawn without putting back, contain one of the ``passed``.

    M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021), section 2.1, unbiased: 1 - C(n - c, k) / C(n, k).
    Raises ValueError unless 1 ≤ k ≤ n and 0 ≤ passed ≤ n.
    """
    _sound(n, passed, k)
    return 1 - comb(n - passed, k) / comb(n, k)


def all_of(n: int, passed: int, k: int) -> float:
    """Return the chance that all of k samples, drawn without putting back, are among the ``passed``.

    S. Yao et al., "τ-bench" (2024), section 3: C(c, k) / C(n, k). Raises ValueError as :func:`any_of`.
    """
    _sound(n, passed, k)
    return comb(passed, k) / comb(n, k)


def pass_at_k(samples: Mapping[str, Sequence[bool]], k: int) -> PassAtK:
    """Return the means over tasks; ``samples[task]``. Tasks with fewer than k samples are left out and counted."""
    enough = [(len(s), sum(s)) for s in samples.values() if len(s) >= k]
    return PassAtK(
        k=k,
        tasks=len(enough),
        left_out=len(samples) - len(enough),
        any=_mean([any_of(n, c, k) for n, c in enough]),
        all=_mean([all_of(n, c, k) for n, c in enough]),
    )


@dataclass(frozen=True, slots=True)
class Union:
    criteria: int
    passed: int
    """By at least one of the runs."""
    rate: float | None


def union_of(results: pl.DataFrame) -> Union:
    """Return how many criteria at least one run passed, out of ``task_id, criterion, passed`` of all runs.

    The quality gate of JobBench, section 2.3: a criterion that nobody ever passes may be unfair.
    """
    best = results.group_by("task_id", "criterion").agg(pl.col("passed").any())
    n, passed = best.height, int(best["passed"].sum())
    return Union(n, passed, passed / n if n else None)


def _sound(n: int, passed: int, k: int) -> None:
    if not (1 <= k <= n and 0 <= passed <= n):
        raise ValueError(f"no {k} of {n} samples with {passed} passed")


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None

"""Rates with other weights than one per job: dollars, the shares of a corpus, and bootstraps within categories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import DRAWS, Bools, Floats, interval, members_of, plain, ratio, weights
from service.reporting.forecast_auc import Estimate


def rate(labels: Bools, seed: int, draws: int = DRAWS, groups: Sequence[str] | None = None) -> Estimate:
    """Return the share of accepted jobs with a 95 % bootstrap interval over jobs, within ``groups`` where given."""
    return weighted_rate(labels, np.ones(len(labels)), seed, draws, groups)


def weighted_rate(
    labels: Bools, worth: Floats, seed: int, draws: int = DRAWS, groups: Sequence[str] | None = None
) -> Estimate:
    """Return Σ worth·accepted / Σ worth over jobs whose worth is known (nan: not), jobs resampled.

    None without a job that is worth something. Raises ValueError for a worth below 0.
    """
    known = np.flatnonzero(~np.isnan(worth))
    if (worth[known] < 0).any():
        raise ValueError("no job is worth less than nothing")
    mine = worth[known]
    won = mine * labels[known]
    value = plain(float(ratio(won.sum(keepdims=True), mine.sum(keepdims=True))[0]))
    within = None if groups is None else [groups[place] for place in known.tolist()]
    found = [ratio(piece @ won, piece @ mine) for piece in weights(len(known), draws, seed, within)]
    return Estimate(len(known), value, interval(np.concatenate(found)) if found else None)


@dataclass(frozen=True, slots=True)
class Reweighted:
    estimate: Estimate
    missing: dict[str, float]
    """Groups of the corpus without a job, with their shares: left out, the others' shares made to add up to one."""


def reweighted_rate(
    labels: Bools, groups: Sequence[str], shares: Mapping[str, float], seed: int, draws: int = DRAWS
) -> Reweighted:
    """Return the rate that a corpus with these shares of groups would have: Σ share·(rate of the group).

    Post-stratification: L. Kish, "Survey Sampling" (1965), chapter 4. Jobs of groups that the corpus does not name count for
    nothing. Resampled within groups, so that no draw loses one. Raises ValueError for a share below 0.
    """
    if min(shares.values(), default=0.0) < 0:
        raise ValueError("no share is less than nothing")
    present = set(groups)
    missing = {name: share for name, share in sorted(shares.items()) if name not in present}
    left = sum(share for name, share in shares.items() if name in present)
    per_job = np.zeros(len(labels))
    for mine in members_of(groups):
        share = shares.get(groups[int(mine[0])], 0.0)
        per_job[mine] = share / left / len(mine) if left > 0 else 0.0
    counted = np.flatnonzero(per_job)
    found = weighted_rate(labels[counted], per_job[counted], seed, draws, [groups[place] for place in counted.tolist()])
    return Reweighted(found, missing)


def interaction(
    base: Bools, other: Bools, special: Bools, seed: int, draws: int = DRAWS
) -> tuple[Estimate, Estimate, Estimate]:
    """Return what ``other`` gains over ``base`` on the same jobs: among special ones, among the rest, and the difference.

    A difference of differences with percentile intervals, jobs resampled within both kinds, all three by the same draws. A kind
    without jobs leaves its own figure and the difference undefined. Raises ValueError for unequal lengths.
    """
    if not base.shape == other.shape == special.shape:
        raise ValueError("the three are not of the same jobs")
    steps = other.astype(np.float64) - base
    kinds: list[Floats] = [special.astype(np.float64), (~special).astype(np.float64)]
    names = ["special" if one else "rest" for one in special]
    whole = np.ones((1, len(steps)))
    pieces = [_gains(piece, steps, kinds) for piece in weights(len(steps), draws, seed, names)]
    drawn = np.concatenate(pieces, axis=1) if pieces else np.empty((3, 0))
    values = _gains(whole, steps, kinds)[:, 0]
    counts = [int(special.sum()), int((~special).sum()), len(special)]
    first, second, third = (
        Estimate(n, plain(float(value)), interval(row)) for n, value, row in zip(counts, values, drawn, strict=True)
    )
    return first, second, third


def _gains(drawn: Floats, steps: Floats, kinds: Sequence[Floats]) -> Floats:
    """Return (3, draws): gain among the one kind, among the other, and their difference."""
    one, two = (ratio(drawn @ (steps * kind), drawn @ kind) for kind in kinds)
    return np.stack([one, two, one - two])

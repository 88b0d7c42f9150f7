"""AUC of many forecasters over the same jobs, with paired bootstraps: every forecaster sees the same draws of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.reporting.drawing import DRAWS, Bools, Floats, interval, plain, weights
from service.reporting.ranking import Ranked


@dataclass(frozen=True, slots=True)
class Estimate:
    n: int
    """Jobs that it rests on."""
    value: float | None
    interval: tuple[float, float] | None
    """95 %, percentiles."""


@dataclass(frozen=True)
class Drawn:
    """The AUC of each forecaster, whole and under each draw of jobs."""

    n: Mapping[str, int]
    values: Mapping[str, float]
    """nan where undefined."""
    drawn: Mapping[str, Floats]

    def estimate(self, name: str) -> Estimate:
        return Estimate(self.n[name], plain(self.values[name]), interval(self.drawn[name]))

    def difference(self, name: str, against: str) -> Estimate:
        """Return how far ``name`` is above ``against``, of the same draws. For forecasts of different jobs, restrict first."""
        steps = self.drawn[name] - self.drawn[against]
        value = self.values[name] - self.values[against]
        return Estimate(min(self.n[name], self.n[against]), plain(value), interval(steps))

    def mean_difference(self, names: Sequence[str], against: Sequence[str]) -> Estimate:
        """Return how far the mean of ``names`` is above that of ``against``, of the same draws."""
        value = float(np.mean([self.values[n] for n in names]) - np.mean([self.values[n] for n in against]))
        drawn = np.mean([self.drawn[n] for n in names], axis=0) - np.mean([self.drawn[n] for n in against], axis=0)
        return Estimate(min(self.n[n] for n in (*names, *against)), plain(value), interval(drawn))

    def mean(self, names: Sequence[str]) -> Estimate:
        """Return the mean over forecasters (at least one), every one of them under the same draws."""
        value = float(np.mean([self.values[name] for name in names]))
        drawn = np.mean([self.drawn[name] for name in names], axis=0)
        return Estimate(min(self.n[name] for name in names), plain(value), interval(drawn))


def drawn_aucs(
    labels: Bools,
    scores: Mapping[str, Floats],
    seed: int,
    draws: int = DRAWS,
    groups: Sequence[str] | None = None,
) -> Drawn:
    """Resample jobs ``draws`` times (within ``groups``, where given) and return every forecaster's AUC each time.

    ``scores[forecaster][job]`` is nan where the forecaster has none of the job: then its figures are over the jobs that it has,
    in the same draws. Raises ValueError for unequal lengths.
    """
    known = {name: np.flatnonzero(~np.isnan(one)) for name, one in scores.items()}
    ranked = {name: Ranked(labels[known[name]], one[known[name]]) for name, one in scores.items()}
    pieces: dict[str, list[Floats]] = {name: [] for name in scores}
    for piece in weights(len(labels), draws, seed, groups):
        for name, one in ranked.items():
            whole = len(known[name]) == len(labels)
            pieces[name].append(one.auc(piece if whole else piece[:, known[name]]))
    return Drawn(
        n={name: len(mine) for name, mine in known.items()},
        values={name: float(one.auc(np.ones((1, len(known[name]))))[0]) for name, one in ranked.items()},
        drawn={name: np.concatenate(found) if found else np.empty(0) for name, found in pieces.items()},
    )


def on_common(labels: Bools, scores: Mapping[str, Floats]) -> tuple[Bools, dict[str, Floats]]:
    """Return labels and scores over the jobs that every forecaster covers."""
    both = np.ones(len(labels), dtype=np.bool_)
    for one in scores.values():
        both &= ~np.isnan(one)
    return labels[both], {name: one[both] for name, one in scores.items()}

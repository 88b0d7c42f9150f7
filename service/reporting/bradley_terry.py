"""Bradley-Terry strengths on the Elo scale, fitted to mean preferences of pairs, with a bootstrap over projects.

Source: R. A. Bradley, M. E. Terry, "Rank analysis of incomplete block designs", Biometrika 39 (1952), 324-345; scale, anchor and
bootstrap as in RLI, section B.2. The likelihood is Σ w · (P ln s + (1 - P) ln(1 - s)) with s = 1 / (1 + 10^((e_j - e_i) / 400)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.reporting.drawing import Floats, interval, weights

ANCHOR = 1000.0
POINTS = 400.0 / log(10)
"""Elo points per natural unit of strength."""
STEPS = 100
LONGEST = 2.0
"""Natural units that one step of the fit may move a strength."""
NEAR = 1e-10
FLOOR = 1e-13
"""Keeps the equations solvable where a chance is 0 or 1 in floating point."""
Weights = Literal["equal", "projects"]


class Disconnected(ValueError):
    """No scale is common to all: nobody in one component was compared with anybody in another."""

    def __init__(self, components: Sequence[Sequence[str]]) -> None:
        self.components = [list(c) for c in components]
        named = "; ".join(", ".join(c) for c in components)
        super().__init__(f"{len(components)} groups were never compared with each other: {named}")


@dataclass(frozen=True, slots=True)
class Preference:
    """What the opinions on one project make of a pair."""

    project: str
    first: str
    second: str
    value: float
    """What it gives the first: 1, 0.5 or 0."""


@dataclass(frozen=True, slots=True)
class EloSettings:
    anchor: str
    """Whose strength is 1000."""
    smoothing: float = 0.1
    """Comparisons that each edge gets on top of its own, half a win each way, in every fit: without them the strength of
    who never wins is without bound."""
    weights: Weights = "equal"
    """``equal``: each edge counts the same; ``projects``: as often as projects were compared."""
    seed: int = 0
    draws: int = 100
    """As in the paper."""


@dataclass(frozen=True, slots=True)
class Rating:
    player: str
    elo: float
    interval: tuple[float, float] | None
    """95 % percentiles over projects; null for the anchor, and with fewer than two projects."""
    projects: int
    """On which it was compared with anybody."""


@dataclass(frozen=True, slots=True)
class Elo:
    ratings: list[Rating]
    """Strongest first."""
    edges: dict[tuple[str, str], tuple[float, int]]
    """Pair → mean preference of the first, projects."""
    settings: EloSettings
    draws_used: int
    """Draws that had a fit: whose comparisons still hung together; an edge that a draw lacks is left out of that draw."""


def bradley_terry(preferences: Sequence[Preference], settings: EloSettings) -> Elo:
    """Return the ratings of all players with the anchor at 1000.

    Several preferences of one pair on one project are first made one, their mean. Raises Disconnected where the comparisons do
    not link everybody, the anchor included, and ValueError for a value outside 0 to 1 or a player against itself.
    """
    table = _Table.of(preferences, settings.anchor)
    groups = components(len(table.players), table.edges)
    if len(groups) > 1:
        raise Disconnected([[table.players[p] for p in group] for group in groups])
    ones = np.ones((1, len(table.projects)))
    elo = table.fit(ones, settings)[0]
    if np.isnan(elo).any():
        raise ValueError("some never lost to the rest, or never won: without smoothing their strength has no bound")
    intervals, used = _intervals(table, settings)
    ratings = [Rating(name, float(elo[p]), intervals[p], table.projects_of(p)) for p, name in enumerate(table.players)]
    sums, counts = table.sums(ones)
    edges = {
        (table.players[a], table.players[b]): (float(sums[0, e] / counts[0, e]), int(counts[0, e]))
        for e, (a, b) in enumerate(table.edges)
    }
    return Elo(sorted(ratings, key=lambda r: (-r.elo, r.player)), edges, settings, used)


def fit(wins: Floats, losses: Floats, edges: NDArray[np.int64], players: int) -> Floats:
    """Return strengths in natural units, mean 0, for each row of ``wins[row, edge]`` and ``losses[row, edge]``.

    Newton's method on the concave likelihood, all rows side by side. A row is NaN where there is no maximum: players of whom one
    group was never beaten by the rest, which cannot be with any smoothing. The edges of each row link all players.
    """
    first, second = edges[:, 0], edges[:, 1]
    incidence = np.zeros((len(edges), players))
    incidence[np.arange(len(edges)), first] = 1.0
    incidence[np.arange(len(edges)), second] = -1.0
    weights, everybody = wins + losses, np.arange(players)
    strengths, longest = np.zeros((len(wins), players)), np.zeros((len(wins), 1))
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-(strengths @ incidence.T)))
        slope = (wins - weights * chance) @ incidence
        bends = weights * chance * (1 - chance)
        bend = np.full((len(wins), players, players), 1.0 / players)  # holds the mean where it is
        bend[:, first, second] -= bends
        bend[:, second, first] -= bends
        bend[:, everybody, everybody] += bends @ np.abs(incidence) + FLOOR
        step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        strengths += step * np.minimum(1.0, LONGEST / np.maximum(longest, NEAR))
        if bool((longest < NEAR).all()):
            break
    return np.where(longest < 1e3 * NEAR, strengths, np.nan)


def components(players: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the connected groups of players, the largest first."""
    leader = list(range(players))

    def lead(player: int) -> int:
        while leader[player] != player:
            leader[player] = leader[leader[player]]
            player = leader[player]
        return player

    for a, b in edges:
        leader[lead(a)] = lead(b)
    groups: dict[int, list[int]] = {}
    for player in range(players):
        groups.setdefault(lead(player), []).append(player)
    return sorted(groups.values(), key=lambda group: (-len(group), group))


@dataclass(frozen=True, slots=True)
class _Table:
    """Preferences as a matrix of projects by edges."""

    players: list[str]
    projects: list[str]
    edges: list[tuple[int, int]]
    values: Floats
    """0 where there is none."""
    there: Floats
    """1 where there is one."""
    anchor: int

    @classmethod
    def of(cls, preferences: Sequence[Preference], anchor: str) -> "_Table":
        if any(not 0 <= p.value <= 1 or p.first == p.second for p in preferences):
            raise ValueError("a preference is of two players and from 0 to 1")
        players = sorted({anchor, *(p.first for p in preferences), *(p.second for p in preferences)})
        projects = sorted({p.project for p in preferences})
        player, project = ({name: n for n, name in enumerate(names)} for names in (players, projects))
        found: dict[tuple[int, tuple[int, int]], list[float]] = {}
        for p in preferences:
            a, b = player[p.first], player[p.second]
            edge, value = ((a, b), p.value) if a < b else ((b, a), 1 - p.value)
            found.setdefault((project[p.project], edge), []).append(value)
        edges = sorted({edge for _, edge in found})
        at = {edge: n for n, edge in enumerate(edges)}
        values, there = (np.zeros((len(projects), len(edges))) for _ in range(2))
        for (row, edge), said in found.items():
            values[row, at[edge]] = sum(said) / len(said)
            there[row, at[edge]] = 1.0
        return cls(players, projects, edges, values, there, player[anchor])

    def sums(self, drawn: Floats) -> tuple[Floats, Floats]:
        """Return Σ preference and number of projects, per row of ``drawn`` and edge."""
        return drawn @ self.values, drawn @ self.there

    def fit(self, drawn: Floats, settings: EloSettings) -> Floats:
        """Return the Elo of each player for each row of ``drawn``: how often each project counts."""
        sums, counts = self.sums(drawn)
        half, seen = settings.smoothing / 2, counts > 0
        total = np.where(seen, counts + settings.smoothing, 1.0)
        scale = total if settings.weights == "projects" else np.ones_like(total)
        wins = np.where(seen, scale * (sums + half) / total, 0.0)
        losses = np.where(seen, scale * (counts - sums + half) / total, 0.0)
        strengths = fit(wins, losses, np.asarray(self.edges, dtype=np.int64).reshape(-1, 2), len(self.players))
        return ANCHOR + POINTS * (strengths - strengths[:, [self.anchor]])

    def linked(self, drawn: Floats) -> NDArray[np.bool_]:
        """Tell for each row whether what it drew still links all players."""
        seen = (drawn @ self.there) > 0
        drawn_edges = ([edge for edge, there in zip(self.edges, row, strict=True) if there] for row in seen.tolist())
        return np.array([len(components(len(self.players), edges)) == 1 for edges in drawn_edges], dtype=np.bool_)

    def projects_of(self, player: int) -> int:
        mine = [e for e, edge in enumerate(self.edges) if player in edge]
        return int(self.there[:, mine].any(axis=1).sum()) if mine else 0


def _intervals(table: _Table, settings: EloSettings) -> tuple[list[tuple[float, float] | None], int]:
    """Return each player's interval, and how many draws had a fit."""
    nothing: list[tuple[float, float] | None] = [None] * len(table.players)
    if len(table.projects) < 2:
        return nothing, 0
    drawn = weights(len(table.projects), settings.draws, settings.seed)
    elos = np.concatenate([table.fit(rows[table.linked(rows)], settings) for rows in drawn])
    elos = elos[~np.isnan(elos).any(axis=1)]
    found = [None if p == table.anchor else interval(elos[:, p]) for p in range(len(table.players))]
    return found, len(elos)

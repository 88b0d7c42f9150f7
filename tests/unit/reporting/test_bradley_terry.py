"""Elo: golden vectors, the scale, and the cases in which there is no scale."""

import math
import random
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from scipy import optimize

from service.reporting.bradley_terry import Disconnected, EloSettings, Preference, bradley_terry

GOLDEN = {("H", "A"): 0.96, ("H", "B"): 0.975, ("H", "C"): 0.98, ("A", "B"): 0.60, ("A", "C"): 0.55, ("B", "C"): 0.50}
PLAIN = EloSettings("H", smoothing=0)


def elo(preferences: Sequence[Preference], settings: EloSettings = PLAIN) -> dict[str, float]:
    return {r.player: r.elo for r in bradley_terry(preferences, settings).ratings}


def of(edges: dict[tuple[str, str], float], project: str = "p") -> list[Preference]:
    return [Preference(project, a, b, value) for (a, b), value in edges.items()]


def test_golden_edges() -> None:
    found = elo(of(GOLDEN))
    assert found["H"] == 1000
    assert (found["A"], found["B"], found["C"]) == pytest.approx((420.383, 360.759, 370.932), abs=5e-4)


def test_ten_to_one_is_four_hundred_points() -> None:
    assert elo(of({("H", "m"): 10 / 11})) == pytest.approx({"H": 1000, "m": 600})


def test_the_order_of_a_pair_does_not_matter() -> None:
    turned = [Preference("p", b, a, 1 - v) for (a, b), v in GOLDEN.items()]
    assert elo(turned) == pytest.approx(elo(of(GOLDEN)))


def test_edges_are_means_over_projects_and_a_project_counts_once() -> None:
    two = [Preference("p", "H", "m", 1.0), Preference("p", "H", "m", 0.0), Preference("q", "H", "m", 1.0)]
    found = bradley_terry(two, PLAIN)
    assert found.edges == {("H", "m"): (0.75, 2)}
    assert elo(two)["m"] == pytest.approx(1000 - 400 * math.log10(3))


def test_equal_weights_and_weights_by_projects() -> None:
    """A, judged against the human on 1 project and against B on 9: the weights decide who gives way."""
    pairs = [Preference("p0", "H", "A", 0.9), Preference("p0", "H", "B", 0.5)]
    pairs += [Preference(f"p{n}", "A", "B", 0.8) for n in range(9)]
    equal = elo(pairs)
    by_projects = elo(pairs, EloSettings("H", smoothing=0, weights="projects"))
    assert by_projects["A"] - by_projects["B"] > equal["A"] - equal["B"] + 50


@pytest.mark.parametrize("weights", ["equal", "projects"])
@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_the_maximum_that_scipy_finds(seed: int, weights: str) -> None:
    drawn = random.Random(seed)
    players = [*"ABCDEF", "H"]
    pairs = [
        Preference(f"p{n}", a, b, drawn.choice([0.0, 0.5, 1.0]))
        for n in range(12)
        for i, a in enumerate(players)
        for b in players[i + 1 :]
        if drawn.random() < 0.4
    ]
    settings = EloSettings("H", smoothing=0.1, weights="equal" if weights == "equal" else "projects")
    found = bradley_terry(pairs, settings)
    best = {r.player: r.elo for r in found.ratings}
    names = sorted(best)

    def loss(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        total = 0.0
        for (a, b), (value, n) in found.edges.items():
            p = (value * n + 0.05) / (n + 0.1)
            chance = 1 / (1 + 10 ** ((x[names.index(b)] - x[names.index(a)]) / 400))
            total -= (1.0 if weights == "equal" else n + 0.1) * (p * math.log(chance) + (1 - p) * math.log(1 - chance))
        return total

    fitted: Any = cast("Any", optimize).minimize(
        loss, np.full(len(names), 800.0), method="BFGS", options={"gtol": 1e-9}
    )
    scipys = {name: 1000 + fitted.x[k] - fitted.x[names.index("H")] for k, name in enumerate(names)}
    assert best == pytest.approx(scipys, abs=0.5)
    assert loss(np.array([best[n] for n in names])) <= fitted.fun + 1e-9


def test_who_never_wins_needs_smoothing() -> None:
    never = [Preference(f"p{n}", "H", "m", 1.0) for n in range(10)]
    with pytest.raises(ValueError, match="without smoothing"):
        elo(never)
    p = (10 + 0.05) / 10.1
    assert elo(never, EloSettings("H"))["m"] == pytest.approx(1000 - 400 * math.log10(p / (1 - p)))


def test_groups_that_were_never_compared_are_named() -> None:
    with pytest.raises(Disconnected, match="never compared") as caught:
        bradley_terry([Preference("p", "H", "a", 1.0), Preference("p", "x", "y", 0.5)], EloSettings("H"))
    assert caught.value.components == [["H", "a"], ["x", "y"]]
    with pytest.raises(Disconnected):
        bradley_terry([Preference("p", "a", "b", 0.5)], EloSettings("H"))


def test_nobody_but_the_anchor() -> None:
    assert elo([]) == {"H": 1000}


@pytest.mark.parametrize(("first", "value"), [("a", 1.5), ("a", -0.1), ("b", 0.5)])
def test_what_is_no_preference_is_refused(first: str, value: float) -> None:
    with pytest.raises(ValueError, match="two players"):
        bradley_terry([Preference("p", first, "b", value)], PLAIN)


def projects(n: int, seed: int = 1) -> list[Preference]:
    drawn = random.Random(seed)
    return [Preference(f"p{k:03}", "H", "m", drawn.choice([1.0, 1.0, 1.0, 0.5, 0.0])) for k in range(n)]


def test_intervals_are_of_resampled_projects() -> None:
    settings = EloSettings("H", seed=4)
    wide, narrow = bradley_terry(projects(20), settings), bradley_terry(projects(400), settings)
    spans: list[float] = []
    for found in (wide, narrow):
        m = next(r for r in found.ratings if r.player == "m")
        assert m.interval is not None
        assert m.interval[0] < m.elo < m.interval[1]
        spans.append(m.interval[1] - m.interval[0])
        assert next(r for r in found.ratings if r.player == "H").interval is None
    assert spans[1] < spans[0] / 2
    assert bradley_terry(projects(20), settings) == wide
    assert wide.draws_used == 100


def test_an_interval_can_be_made_again() -> None:
    given = projects(30)
    counts = np.random.default_rng(4).multinomial(30, [1 / 30] * 30, size=100)
    means = (counts @ np.array([p.value for p in given]) + 0.05) / 30.1
    elos = 1000 - 400 * np.log10(means / (1 - means))
    m = next(r for r in bradley_terry(given, EloSettings("H", seed=4)).ratings if r.player == "m")
    assert m.interval == pytest.approx(tuple(np.quantile(elos, (0.025, 0.975))))


def test_a_draw_whose_comparisons_fall_apart_is_left_out_and_counted() -> None:
    pairs = [Preference("p1", "H", "a", 0.5), Preference("p2", "H", "b", 0.5), Preference("p3", "a", "b", 0.6)]
    found = bradley_terry(pairs, EloSettings("H", seed=1))
    assert 0 < found.draws_used < 100
    assert all(r.interval is not None for r in found.ratings if r.player != "H")

"""Cost against score, effort, scaffolds, one agent per model; covariates, causes, complexity."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.reporting import best_scaffold
from service.reporting.causes import shares, tag_shares
from service.reporting.complexity import measure
from service.reporting.costs import Scored, effort_sweeps, frontier, scaffold_deltas
from service.reporting.covariates import joined, pearson, read_covariates


def agent(name: str, **values: Any) -> Scored:
    plain: dict[str, Any] = {
        "scaffold": "s",
        "model": "m",
        "vendor": "v",
        "effort": None,
        "score": 0.5,
        "cost_usd": 1.0,
        "by_task": {},
    }
    return Scored(agent=name, **(plain | values))


def test_frontier_leaves_out_the_beaten_and_the_unknown() -> None:
    agents = [
        agent("cheap", cost_usd=1.0, score=0.3),
        agent("dear", cost_usd=9.0, score=0.9),
        agent("beaten", cost_usd=9.5, score=0.9),
        agent("twin", cost_usd=1.0, score=0.3),
        agent("unknown", cost_usd=None, score=1.0),
        agent("unscored", cost_usd=0.0, score=None),
    ]
    assert frontier(agents) == {"cheap", "twin", "dear"}


def test_sweeps_are_in_the_order_of_effort_and_need_two() -> None:
    agents = [agent("x", effort="max"), agent("y", effort="low"), agent("z"), agent("o", model="other", effort="low")]
    (sweep,) = effort_sweeps(agents)
    assert [a.agent for a in sweep] == ["y", "z", "x"]


def test_what_a_scaffold_adds_is_paired_by_task() -> None:
    agents = [
        agent("a", scaffold="s", by_task={"t1": 0.2, "t2": 0.4, "t3": 1.0}),
        agent("b", scaffold="r", by_task={"t1": 0.5, "t2": 0.7}),
        agent("c", scaffold="r", effort="high", by_task={"t1": 1.0}),
        agent("d", scaffold="r", model="other", by_task={"t1": 1.0}),
        agent("e", scaffold="q", model=None, by_task={"t1": 1.0}),
    ]
    (delta,) = scaffold_deltas(agents, 0, 200)
    assert (delta.first.agent, delta.second.agent, delta.tasks) == ("a", "b", 2)
    assert delta.mean == pytest.approx(0.3)
    assert delta.interval == pytest.approx((0.3, 0.3))


AGENTS = [
    agent("c1", scaffold="cc", vendor="an"),
    agent("o1", scaffold="oc", vendor="an"),
    agent("g1", scaffold="oc", vendor="go", model="g"),
    agent("u1", scaffold="cc", vendor=None, model="u"),
]


def test_best_scaffold_by_list_and_by_vendor() -> None:
    assert best_scaffold.by_list(AGENTS, ["g1", "c1"]).agents == ["c1", "g1"]
    with pytest.raises(ValueError, match="nobody"):
        best_scaffold.by_list(AGENTS, ["nobody"])
    found = best_scaffold.by_vendor(AGENTS, {"an": "cc", "*": "oc"})
    assert found.agents == ["c1", "g1"]
    assert found.left_out == {"o1": "not in cc", "u1": "not in oc"}
    assert best_scaffold.by_vendor(AGENTS, {"an": "cc"}).left_out["g1"] == "no scaffold is named for its vendor"


def test_best_scaffold_is_chosen_by_other_tasks() -> None:
    found = best_scaffold.by_other_tasks(AGENTS, {"c1": 0.2, "o1": 0.3, "g1": 0.0}, "easy")
    assert found.agents == ["o1", "g1"]
    assert found.left_out == {"c1": "another scaffold is better there", "u1": "no score there"}
    assert "easy" in found.rule
    assert best_scaffold.by_other_tasks(AGENTS, {"o1": 0.3, "c1": 0.3}, "easy").agents == ["c1"]


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=20))
def test_pearson_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = pearson(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert found is None
    else:
        theirs: Any = stats.pearsonr(first, second)  # pyright: ignore[reportUnknownMemberType]
        assert found == pytest.approx(float(theirs.statistic), abs=1e-9)


def test_pearson_needs_two_pairs_and_equal_lengths() -> None:
    assert pearson([1.0], [1.0]) is None
    with pytest.raises(ValueError, match="same items"):
        pearson([1.0], [])


def test_covariates_join_and_name_what_is_alone() -> None:
    found = joined({"a": 0.1, "b": 0.9, "c": 0.5, "x": 1.0}, {"a": 3.0, "b": 1.0, "c": 2.0, "y": 0.0})
    assert [(r.group, r.quadrant) for r in found.rows] == [("a", "low/high"), ("b", "high/low"), ("c", "high/high")]
    assert (found.scores_alone, found.values_alone) == (["x"], ["y"])
    assert found.pearson == pytest.approx(-1.0)
    assert joined({}, {"a": 1.0}).median_score is None


def test_covariates_are_read_from_csv() -> None:
    assert read_covariates('\ufeffgroup,desire\nlegal,4.5\n"arts, all",2\nempty,\n\n') == {
        "legal": 4.5,
        "arts, all": 2.0,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("g,v\na,1\na,2\n", "line 3"),
        ("g,v\na\n", "two columns"),
        ("g,v\na,nan\n", "no number"),
        ("g,v\na,x\n", "line 2"),
        ("g,v\n" + "".join(f"{n},1\n" for n in range(2001)), "2000"),
        ("x" * 300_000, "longer"),
    ],
)
def test_bad_csv_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_covariates(text)


def test_causes_and_tags() -> None:
    assert [(c.name, c.count, c.share) for c in shares(["a", None, "b", "a", ""])] == [("a", 2, 2 / 3), ("b", 1, 1 / 3)]
    found = {c.name: c.share for c in tag_shares([["x", "y"], ["x", "x"], []])}
    assert found == {"x": pytest.approx(2 / 3), "y": pytest.approx(1 / 3)}
    assert shares([]) == []


def test_measures_leave_the_unknown_out() -> None:
    found = measure([1.0, None, 3.0, 8.0], [6.0, None])
    assert (found.n, found.median, found.ratio) == (3, 3.0, 0.5)
    assert measure([], [1.0]).median is None
    assert measure([1.0], [0.0]).ratio is None
    assert measure([1.0]).ratio is None
    assert math.isclose(measure([2.0], [4.0]).ratio or 0, 0.5)

"""What an evaluation's request means: matrices, choices of tasks, orders, and what is missing."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.benchmarks import ItemStatus
from service.domain.errors import Invalid
from service.domain.evaluation_plans import Filled, Item, Slot, expand, laid_over, missing, select, slots
from service.domain.evaluations import AgentChoice, Matrix, Order, RunSettings, TaskSelection
from service.domain.run_states import Outcome

NAMES = st.sampled_from(["a", "b", "c", "d"])
MATRICES = st.builds(
    Matrix,
    scaffold=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    model=st.lists(st.one_of(st.none(), NAMES), min_size=1, max_size=3, unique=True),
    settings=st.dictionaries(st.sampled_from(["effort", "n"]), st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)),
)  # fmt: skip


def parts(choice: AgentChoice) -> tuple[Any, ...]:
    return choice.scaffold, choice.model, tuple(sorted(choice.settings.items()))


@given(MATRICES, st.data())
def test_a_matrix_is_the_product_without_what_is_excluded(matrix: Matrix, data: st.DataObject) -> None:
    axes: dict[str, Sequence[Any]] = {"scaffold": matrix.scaffold, "model": matrix.model, **matrix.settings}
    names = data.draw(st.lists(st.sampled_from(sorted(axes)), min_size=1, unique=True))
    out = {name: data.draw(st.sampled_from(list(axes[name]))) for name in names}
    whole = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    left = [one for one in whole if any(one[name] != value for name, value in out.items())]
    changed = matrix.model_copy(update={"exclude": [out]})
    if not left:
        with pytest.raises(Invalid, match="excludes every"):
            expand([], changed)
        return
    found = expand([], changed)
    assert [parts(c) for c in found.choices] == [
        (one["scaffold"], one["model"], tuple(sorted((k, v) for k, v in one.items() if k in matrix.settings)))
        for one in left
    ]
    assert found.useless == []


def test_what_is_listed_comes_first_and_what_is_included_last() -> None:
    matrix = Matrix(scaffold=["m"], include=[AgentChoice(scaffold="i")])
    assert [c.scaffold for c in expand([AgentChoice(scaffold="l")], matrix).choices] == ["l", "m", "i"]


SENSELESS: list[tuple[list[Any], Any, str]] = [
    ([], {"scaffold": ["a"], "exclude": [{"colour": 1}]}, "unknown_axis"),
    ([], {"scaffold": ["a"], "exclude": [{}]}, "unknown_axis"),
    ([], {"scaffold": ["a"], "settings": {"model": [1]}}, "unknown_axis"),
    ([], {"scaffold": ["a", "a"]}, "duplicate_agents"),
    ([{"scaffold": "a"}], {"scaffold": ["a"]}, "duplicate_agents"),
    ([{"scaffold": "a"}, {"scaffold": "a", "label": "other"}], None, "duplicate_agents"),
    ([], {"scaffold": ["a"], "settings": {"x": [*range(100)], "y": [*range(11)]}}, "matrix_too_large"),
    ([], {"scaffold": ["a"], "settings": {"x": [*range(100)], "y": [*range(3)]}}, "too_many_agents"),
    ([], {"scaffold": ["a"], "exclude": [{"scaffold": "a"}]}, "no_agents"),
]


@pytest.mark.parametrize(("listed", "matrix", "problem"), SENSELESS)
def test_what_makes_no_sense_is_refused_by_name(listed: Any, matrix: Any, problem: str) -> None:
    given_ = None if matrix is None else Matrix.model_validate(matrix)
    with pytest.raises(Invalid) as refused:
        expand([AgentChoice.model_validate(one) for one in listed], given_)
    assert refused.value.type == problem


def test_duplicates_are_named() -> None:
    with pytest.raises(Invalid) as refused:
        expand([AgentChoice(scaffold="a", settings={"effort": "max"})] * 2, None)
    assert refused.value.fields["agents"] == ["a · effort=max"]


def test_an_exclusion_that_leaves_nothing_out_is_told() -> None:
    matrix = Matrix(scaffold=["a"], settings={"flag": [True]}, exclude=[{"flag": 1}, {"scaffold": "b"}])
    assert expand([], matrix).useless == [{"flag": 1}, {"scaffold": "b"}]


def items(*keys: str, **more: Any) -> list[Item]:
    return [Item(f"task_{key}", key, f"t/{key}", key * 64, **more) for key in keys]


def keys(found: Sequence[Item]) -> str:
    return "".join(item.key for item in found)


SOME = items("a", "b", "c")
ODD = [*SOME, *items("q", status=ItemStatus.QUARANTINED), *items("d", status=ItemStatus.DISPUTED)]


@pytest.mark.parametrize(
    ("wanted", "chosen", "useless"),
    [
        ({}, "abcd", []),
        ({"disputed": False}, "abc", []),
        ({"include": ["*"]}, "abcd", []),
        ({"include": ["q"]}, "q", []),
        ({"include": ["[a-b]", "zz", "z*"]}, "ab", ["zz", "z*"]),
        ({"include": ["t/?"], "exclude": ["t/a", "b"]}, "cd", []),
        ({"exclude": ["*"]}, "", []),
    ],
)
def test_items_are_chosen_by_key_or_name(wanted: Any, chosen: str, useless: list[str]) -> None:
    found = select(ODD, TaskSelection.model_validate(wanted), 0)
    assert (keys(found.items), found.useless) == (chosen, useless)


def test_a_key_with_a_bracket_is_itself() -> None:
    odd = items("a[1]", "a1")
    found = select(odd, TaskSelection(include=["a[1]"]), 0)
    assert (keys(found.items), found.useless) == ("a[1]a1", [])


def test_facets_hold_as_text_and_in_lists() -> None:
    facets: list[dict[str, Any]] = [{"n": 3.0}, {"n": ["3", "4"]}, {"n": "4"}, {}]
    some = [Item(f"t{n}", str(n), "x", "y", facets=of) for n, of in enumerate(facets)]
    assert keys(select(some, TaskSelection(facets={"n": ["3"]}), 0).items) == "01"
    assert keys(select(some, TaskSelection(facets={"n": ["3", "4"]}), 0).items) == "012"


def test_a_task_of_two_items_is_there_once() -> None:
    twice = [*SOME, Item("task_a", "again", "t/a", "a" * 64)]
    found = select(twice, TaskSelection(), 0)
    assert (keys(found.items), found.repeated) == ("abc", 1)


@given(st.integers(0, 1 << 52), st.integers(1, 40), st.permutations([f"k{n}" for n in range(40)]))
def test_a_draw_is_the_seeds_alone_and_grows(seed: int, limit: int, order: list[str]) -> None:
    drawn = select(items(*order), TaskSelection(limit=limit), seed).items
    straight = select(items(*sorted(order)), TaskSelection(limit=limit), seed).items
    assert {item.key for item in drawn} == {item.key for item in straight}
    assert [order.index(item.key) for item in drawn] == sorted(order.index(item.key) for item in drawn)
    less = select(items(*order), TaskSelection(limit=max(1, limit - 1)), seed).items
    assert {item.key for item in less} <= {item.key for item in drawn}
    assert len(drawn) == limit


AGENTS = st.lists(st.tuples(NAMES, st.integers(1, 4)), min_size=1, max_size=4, unique_by=lambda a: a[0])
TASKS = st.lists(NAMES, min_size=1, max_size=4, unique=True)


@given(AGENTS, TASKS, st.sampled_from(Order))
def test_every_slot_comes_once(agents: list[tuple[str, int]], tasks: list[str], order: Order) -> None:
    found = list(slots(agents, tasks, order))
    wanted = {Slot(a, t, n) for a, samples in agents for t in tasks for n in range(1, samples + 1)}
    assert len(found) == len(wanted)
    assert set(found) == wanted


@given(AGENTS, TASKS)
def test_breadth_begins_no_second_sample_before_every_first(agents: list[tuple[str, int]], tasks: list[str]) -> None:
    found = list(slots(agents, tasks, Order.BREADTH))
    assert [slot.sample for slot in found] == sorted(slot.sample for slot in found)
    first = [slot for slot in found if slot.sample == 1]
    assert [slot.task_id for slot in first] == [task for task in tasks for _ in agents]


@given(AGENTS, TASKS)
def test_depth_ends_an_agent_before_the_next(agents: list[tuple[str, int]], tasks: list[str]) -> None:
    found = list(slots(agents, tasks, Order.DEPTH))
    assert [slot.agent_id for slot in found] == [a for a, samples in agents for _ in range(samples * len(tasks))]


OUTCOMES = st.sampled_from([None, *Outcome])
FILLED = st.lists(st.tuples(NAMES, st.integers(1, 2), OUTCOMES), max_size=30)


@given(FILLED)
def test_missing_is_what_nothing_counts_in(history: list[tuple[str, int, Outcome | None]]) -> None:
    filled = [Filled(f"run{n}", Slot("a", task, k), outcome) for n, (task, k, outcome) in enumerate(history)]
    wanted = list(slots([("a", 2)], ["a", "b", "c", "d"], Order.BREADTH))
    found = dict(missing(wanted, filled))
    for slot in wanted:
        there = [one for one in filled if one.slot == slot]
        counting = [one for one in there if one.outcome not in (Outcome.CANCELLED, Outcome.INVALIDATED)]
        assert (slot in found) == (not counting)
        if slot in found:
            assert found[slot] == (there[-1].run_id if there else None)


def test_an_agents_settings_lie_over_the_evaluations() -> None:
    outer = RunSettings(limits={"cpus": 1, "pids": 64}, priority=3, labels={"a": "1", "b": "1"}, max_attempts=2)
    inner = RunSettings(limits={"cpus": 2}, labels={"b": "2"}, max_attempts=1)
    found = laid_over(outer, inner)
    assert found.limits == {"cpus": 2, "pids": 64}
    assert found.labels == {"a": "1", "b": "2"}
    assert (found.priority, found.max_attempts) == (3, 1)

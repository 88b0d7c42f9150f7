"""What an evaluation's request means: which agents, which tasks, in which order. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import product
from typing import Any

from service.domain.benchmarks import ItemStatus, facet_values
from service.domain.errors import Invalid
from service.domain.evaluations import MOST_AGENTS, MOST_MATRIX, AgentChoice, Matrix, Order, RunSettings, TaskSelection
from service.domain.run_states import EndedBecause, Outcome
from service.domain.strata import spread
from service.domain.tasks import Facet, canonical_digest

_PLAIN = ("scaffold", "model")
_WILD = re.compile(r"[*?[]")
Combination = Mapping[str, Any]
"""Axis → value: ``scaffold``, ``model`` and settings by their names."""


@dataclass(frozen=True, slots=True)
class Expanded:
    choices: list[AgentChoice]
    """Those that are listed, then those of the matrix, then what it includes beside them."""
    useless: list[Combination]
    """Exclusions that leave nothing out."""


def expand(listed: Sequence[AgentChoice], matrix: Matrix | None) -> Expanded:
    """Return the agents that are asked for.

    Raises Invalid ``matrix_too_large``, ``too_many_agents``, ``unknown_axis``, ``duplicate_agents``, ``no_agents``.
    """
    choices: list[AgentChoice] = list(listed)
    useless: list[Combination] = []
    if matrix is not None:
        _check_axes(matrix)
        left = [one for one in _combinations(matrix) if not any(_covers(out, one) for out in matrix.exclude)]
        useless += [out for out in matrix.exclude if not any(_covers(out, one) for one in _combinations(matrix))]
        choices += [_choice(one) for one in left] + matrix.include
    if not choices:
        raise Invalid("no_agents", "the matrix excludes every combination, and nothing else is named")
    if len(choices) > MOST_AGENTS:
        raise Invalid("too_many_agents", f"an evaluation has at most {MOST_AGENTS} agents", agents=len(choices))
    _refuse_repeated(choices)
    return Expanded(choices, useless)


def name_of(choice: AgentChoice) -> str:
    """Return what people call the choice before it is an agent."""
    if choice.agent is not None or choice.label is not None:
        return str(choice.agent or choice.label)
    parts = [choice.scaffold, choice.model, *(f"{k}={v}" for k, v in sorted(choice.settings.items()))]
    return " · ".join(str(part) for part in parts if part is not None)[:200]


def _check_axes(matrix: Matrix) -> None:
    size = len(matrix.scaffold) * len(matrix.model)
    for values in matrix.settings.values():
        size *= len(values)
    if size > MOST_MATRIX:
        raise Invalid("matrix_too_large", f"a matrix has at most {MOST_MATRIX} combinations", combinations=size)
    clash = sorted(set(matrix.settings) & set(_PLAIN))
    unknown = sorted({name for out in matrix.exclude for name in out} - {*_PLAIN, *matrix.settings})
    if clash or unknown:
        name = (clash or unknown)[0]
        why = "is no setting" if clash else "is no axis of the matrix"
        raise Invalid("unknown_axis", f"{name[:80]!r} {why}", axes=[*_PLAIN, *matrix.settings])
    if any(not out for out in matrix.exclude):
        raise Invalid("unknown_axis", "an exclusion without members would leave out everything")


def _combinations(matrix: Matrix) -> Iterator[dict[str, Any]]:
    axes: dict[str, Sequence[Any]] = {"scaffold": matrix.scaffold, "model": matrix.model, **matrix.settings}
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _covers(out: Combination, one: Combination) -> bool:
    return all(_same(one[name], value) for name, value in out.items())


def _same(a: Any, b: Any) -> bool:
    """``True`` and ``1`` are different settings, ``1`` and ``1.0`` the same."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def _choice(one: Combination) -> AgentChoice:
    settings = {name: value for name, value in one.items() if name not in _PLAIN}
    return AgentChoice(scaffold=one["scaffold"], model=one["model"], settings=settings)


def _refuse_repeated(choices: Sequence[AgentChoice]) -> None:
    seen: set[str] = set()
    repeated: list[str] = []
    for choice in choices:
        digest = canonical_digest([choice.agent, choice.scaffold, choice.model, choice.settings])
        if digest in seen:
            repeated.append(name_of(choice))
        seen.add(digest)
    if repeated:
        detail = f"{repeated[0]} is there twice; several runs of one agent are its samples"
        raise Invalid("duplicate_agents", detail, agents=repeated[:100])


@dataclass(frozen=True, slots=True)
class Item:
    """A task that may be chosen; in a benchmark, an item of it."""

    task_id: str
    key: str
    name: str
    """The task's."""
    digest: str
    status: ItemStatus = ItemStatus.OK
    facets: Mapping[str, Facet] = field(default_factory=dict[str, Facet])
    check: str | None = None
    """State that a check found: ok | suspect | broken; null: nobody has looked."""


@dataclass(frozen=True, slots=True)
class Selected:
    items: list[Item]
    """In the benchmark's order, each task once."""
    useless: list[str]
    """Patterns that match nothing."""
    repeated: int
    """Items left out because their task is another item's, too."""


def select(items: Sequence[Item], wanted: TaskSelection, seed: int) -> Selected:
    """Return the chosen items. Which of them a ``limit`` draws, the seed and their keys alone decide: a lower limit draws
    some of what a higher one does."""
    include, exclude = _Globs(wanted.include), _Globs(wanted.exclude)
    fit = [item for item in items if _fits(item, wanted, include, exclude)]
    once = list({item.task_id: item for item in reversed(fit)}.values())
    if wanted.limit is not None:
        once = spread(once, wanted.limit, f"tasks {seed}", key=lambda i: i.key, stratum=lambda _: "")
    chosen = {item.key for item in once}
    useless = [*include.useless(items), *exclude.useless(items)]
    repeated = len(fit) - len({item.task_id for item in fit})
    return Selected([item for item in fit if item.key in chosen], useless, repeated)


class _Globs:
    """Patterns over an item's key or its task's name. Most are plain keys, and there may be many items."""

    def __init__(self, globs: Sequence[str]) -> None:
        self._plain = dict.fromkeys(globs)  # what is written as it is counts, also with a bracket in it
        self._wild = {glob: re.compile(translate(glob)) for glob in globs if _WILD.search(glob)}

    def name(self, item: Item) -> bool:
        if item.key in self._plain or item.name in self._plain:
            return True
        return any(wild.match(item.key) or wild.match(item.name) for wild in self._wild.values())

    def useless(self, items: Iterable[Item]) -> list[str]:
        """Return those that match none of the items."""
        names = {name for item in items for name in (item.key, item.name)}
        unnamed = [glob for glob in self._plain if glob not in names]
        return [glob for glob in unnamed if glob not in self._wild or not any(map(self._wild[glob].match, names))]


def _fits(item: Item, wanted: TaskSelection, include: _Globs, exclude: _Globs) -> bool:
    if item.status is ItemStatus.QUARANTINED and item.key not in wanted.include:
        return False
    if item.status is ItemStatus.DISPUTED and not wanted.disputed:
        return False
    if (wanted.include and not include.name(item)) or exclude.name(item):
        return False
    return all(_has(item, name, values) for name, values in wanted.facets.items())


def _has(item: Item, name: str, values: Sequence[str]) -> bool:
    return name in item.facets and not facet_values(item.facets[name]).isdisjoint(values)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the results: one sample of a task by an agent."""

    agent_id: str
    task_id: str
    sample: int
    """From 1."""


def slots(agents: Sequence[tuple[str, int]], tasks: Sequence[str], order: Order) -> Iterator[Slot]:
    """Yield every slot in the order in which runs are to start; ``agents``: id and samples."""
    if order is Order.DEPTH:
        for agent_id, samples in agents:
            yield from (Slot(agent_id, task_id, n) for task_id in tasks for n in range(1, samples + 1))
        return
    for n in range(1, max((samples for _, samples in agents), default=0) + 1):
        for task_id in tasks:
            yield from (Slot(agent_id, task_id, n) for agent_id, samples in agents if n <= samples)


@dataclass(frozen=True, slots=True)
class Filled:
    """A run in its slot."""

    run_id: str
    slot: Slot
    outcome: Outcome | None = None
    """Null while it is not done."""
    ended_because: EndedBecause | None = None

    @property
    def counts(self) -> bool:
        return self.outcome not in (Outcome.CANCELLED, Outcome.INVALIDATED)


def missing(wanted: Iterable[Slot], filled: Iterable[Filled]) -> list[tuple[Slot, str | None]]:
    """Return the slots without a run that counts, in the order of ``wanted``, each with the last run that was in it.

    ``filled``: oldest first. A run that is not done counts.
    """
    last: dict[Slot, str] = {}
    taken: set[Slot] = set()
    for one in filled:
        last[one.slot] = one.run_id
        if one.counts:
            taken.add(one.slot)
    return [(slot, last.get(slot)) for slot in wanted if slot not in taken]


def laid_over(outer: RunSettings, inner: RunSettings) -> RunSettings:
    """Return the settings of an agent's runs: what ``inner`` says, else what ``outer`` says; limits and labels one by one."""
    plain = {name: getattr(inner, name) for name in RunSettings.model_fields if getattr(inner, name) is not None}
    merged = {name: {**getattr(outer, name), **getattr(inner, name)} for name in ("limits", "labels")}
    return outer.model_copy(update=plain | merged)

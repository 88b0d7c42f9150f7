"""Filters and sorts of run lists."""

import re
from collections.abc import Mapping
from typing import Any
from typing import cast as typed

from sqlalchemy import ColumnElement, cast, func, or_, select
from sqlalchemy.dialects.postgresql import JSONB

from service.domain.campaigns import RunWhere
from service.domain.cleaning import clean_str
from service.domain.regrades import RunChoice
from service.domain.run_states import NO_WORK, Flag
from service.store.listing import Condition, sorts_by
from service.store.overlays import facet_of
from service.store.paging import Sort
from service.store.rows import RunFilter
from service.store.tables import agents, runs
from service.store.tables_benchmarks import benchmark_items

SORTS: Mapping[str, Sort] = sorts_by(
    created_at=Sort(runs.c.created_at),
    updated_at=Sort(runs.c.updated_at),
    score=Sort(func.coalesce(runs.c.score, float("-inf")), float),
)
"""Sorts that lists offer; unscored runs count as lowest."""
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,15})(\.\d{1,15})?", re.ASCII)


def filter_of(choice: RunChoice | RunWhere) -> RunFilter:
    """Return the filter that a request's body or a campaign's selection describes: the members have its names."""
    return RunFilter(**{name: _unchanging(getattr(choice, name)) for name in type(choice).model_fields})


def _unchanging(value: Any) -> Any:
    return tuple(typed("list[str]", value)) if isinstance(value, list) else value


def conditions(where: RunFilter) -> list[ColumnElement[bool]]:
    """Return what must hold of the tables runs, agents and tasks, joined."""
    several: list[tuple[ColumnElement[Any], tuple[str, ...]]] = [
        (runs.c.id, where.ids), (runs.c.agent_id, where.agent_id), (runs.c.task_id, where.task_id),
        (runs.c.phase, where.phase), (runs.c.outcome, where.outcome), (runs.c.ended_because, where.ended_because),
        (runs.c.evaluation_id, where.evaluation_id),
        (agents.c.spec["model"].astext, where.model), (agents.c.spec["scaffold"].astext, where.scaffold),
    ]  # fmt: skip
    found: list[ColumnElement[bool]] = [column.in_(values) for column, values in several if values]
    if where.flag:
        found.append(runs.c.flags.overlap(list(where.flag)))
    if where.labels:
        found.append(runs.c.labels.contains(dict(where.labels)))
    found += [facet_holds(name, value) for name, value in where.facets.items()]
    if where.benchmark_id:
        found.append(of_benchmark(runs.c.task_id)(where.benchmark_id))
    return [*found, *_times(where)]


def work_of_agents(where: RunFilter) -> list[ColumnElement[bool]]:
    """As :func:`conditions`, for choosing what is graded or rated: altered-work controls and preflights are no agent's
    work, and are in it only where they are named by id or by their flag."""
    found = conditions(where)
    left_out = sorted(flag.value for flag in NO_WORK if flag not in where.flag)
    if not where.ids and left_out:
        found.append(~runs.c.flags.overlap(left_out))
    return found


def is_control() -> ColumnElement[bool]:
    """Labels are anybody's to give; the flag is ours."""
    return runs.c.flags.contains([Flag.CONTROL.value])


def is_no_work() -> ColumnElement[bool]:
    return runs.c.flags.overlap(sorted(flag.value for flag in NO_WORK))


def _times(where: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if where.created_after is not None:
        found.append(runs.c.created_at > where.created_after)
    if where.created_before is not None:
        found.append(runs.c.created_at < where.created_before)
    if where.updated_after is not None:
        found.append(runs.c.updated_at > where.updated_after)
    return found


def of_benchmark(task_id: ColumnElement[str]) -> Condition:
    """Whether the task is an item of one of the benchmarks. The caller's query has the project's predicate."""
    items = benchmark_items.c
    return lambda ids: task_id.in_(select(items.task_id).where(items.benchmark_id.in_(ids)))


def facet_holds(name: str, value: str) -> ColumnElement[bool]:
    """Whether a task's facet is ``value`` (as text or as a number), or a list that contains it."""
    facet = facet_of(name)
    wanted = [facet.contains(cast(clean_str(value)[0], JSONB))]
    if _NUMBER.fullmatch(value):
        wanted.append(facet == cast(float(value), JSONB))
    return or_(*wanted)

"""Filters and sorts of run lists."""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, cast, func, or_
from sqlalchemy.dialects.postgresql import JSONB

from service.store.cleaning import clean_str
from service.store.paging import Sort
from service.store.rows import RunFilter
from service.store.tables import agents, runs, tasks

SORTS: Mapping[str, Sort] = {
    "created_at": Sort(runs.c.created_at),
    "-created_at": Sort(runs.c.created_at, descending=True),
    "updated_at": Sort(runs.c.updated_at),
    "-updated_at": Sort(runs.c.updated_at, descending=True),
    "score": Sort(func.coalesce(runs.c.score, float("-inf")), float),
    "-score": Sort(func.coalesce(runs.c.score, float("-inf")), float, descending=True),
}
"""Sorts that lists offer; unscored runs count as lowest."""
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,15})(\.\d{1,15})?", re.ASCII)


def conditions(where: RunFilter) -> list[ColumnElement[bool]]:
    """Return what must hold of the tables runs, agents and tasks, joined."""
    several: list[tuple[ColumnElement[Any], tuple[str, ...]]] = [
        (runs.c.id, where.ids), (runs.c.agent_id, where.agent_id), (runs.c.task_id, where.task_id),
        (runs.c.phase, where.phase), (runs.c.outcome, where.outcome), (runs.c.ended_because, where.ended_because),
        (agents.c.spec["model"].astext, where.model), (agents.c.spec["scaffold"].astext, where.scaffold),
    ]  # fmt: skip
    found: list[ColumnElement[bool]] = [column.in_(values) for column, values in several if values]
    if where.flag:
        found.append(runs.c.flags.overlap(list(where.flag)))
    if where.labels:
        found.append(runs.c.labels.contains(dict(where.labels)))
    found += [facet_holds(name, value) for name, value in where.facets.items()]
    return [*found, *_times(where)]


def _times(where: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if where.created_after is not None:
        found.append(runs.c.created_at > where.created_after)
    if where.created_before is not None:
        found.append(runs.c.created_at < where.created_before)
    if where.updated_after is not None:
        found.append(runs.c.updated_at > where.updated_after)
    return found


def facet_holds(name: str, value: str) -> ColumnElement[bool]:
    """Whether a task's facet is ``value`` (as text or as a number), or a list that contains it."""
    facet = tasks.c.manifest["facets"][name]
    wanted = [facet.contains(cast(clean_str(value)[0], JSONB))]
    if _NUMBER.fullmatch(value):
        wanted.append(facet == cast(float(value), JSONB))
    return or_(*wanted)

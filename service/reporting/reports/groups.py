"""Columns of a table: the tasks of each value of a facet, some values taken together (NEEDS A16)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.benchmarks import Grouping
from service.domain.errors import Invalid
from service.reporting.reports.data import Data

MOST_GROUPS = 60
"""Columns; further groups are merged, and that is said."""
REST = "All others"


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    key: str
    """Of its column: letters, digits and underscores."""
    tasks: list[str]
    """In their order."""


def grouping(data: Data) -> Grouping | None:
    """Return the grouping that was asked for, or the benchmark's first; null where it has none.

    Raises Invalid ``unknown_grouping``.
    """
    known = data.header.groupings
    if data.settings.grouping is None:
        return known[0] if known else None
    for one in known:
        if one.name == data.settings.grouping:
            return one
    names = ", ".join(g.name for g in known) or "none"
    raise Invalid("unknown_grouping", f"no grouping {data.settings.grouping!r}; the benchmark has: {names}")


def groups(data: Data, chosen: Grouping, tasks: Sequence[str]) -> list[Group]:
    """Return the groups with a task, the largest first and merged ones last. A task with two values may be in two."""
    merged = {value: column for column, values in chosen.merges.items() for value in values}
    found: dict[str, list[str]] = {}
    for task in tasks:
        for name in dict.fromkeys(merged.get(v, v) for v in data.tasks[task].values(chosen.facet)):
            found.setdefault(name, []).append(task)
    ordered = sorted(found.items(), key=lambda item: (item[0] in chosen.merges, -len(item[1]), item[0]))
    if len(ordered) > MOST_GROUPS:
        rest = sorted({task for _, members in ordered[MOST_GROUPS - 1 :] for task in members})
        ordered = [*ordered[: MOST_GROUPS - 1], (REST, rest)]
    return [Group(name, f"group_{n}_{_slug(name)}", members) for n, (name, members) in enumerate(ordered, 1)]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40]

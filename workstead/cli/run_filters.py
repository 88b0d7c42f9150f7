"""The filters of the run list, as options say them."""

from collections.abc import Mapping, Sequence
from typing import Any

from workstead.aio import AsyncClient
from workstead.cli.options import grouped, pairs
from workstead.errors import WorksteadError

AGENT_ID, TASK_ID = "agt_", "task_"
MAX_NAMED = 32
"""Values that the API takes of one filter."""


class UnknownName(WorksteadError):
    """The service has no agent or task of that name."""


async def run_query(
    client: AsyncClient,
    *,
    phase: Sequence[str] | None = None,
    outcome: Sequence[str] | None = None,
    agent: Sequence[str] | None = None,
    task: Sequence[str] | None = None,
    label: Sequence[str] | None = None,
    where: Sequence[str] | None = None,
) -> Mapping[str, str | list[str]]:
    """Return the query of ``/v1/runs``; names are looked up. Raises UnknownName, Problem, typer.BadParameter."""
    query = [("phase", p) for p in phase or ()] + [("outcome", o) for o in outcome or ()]
    query += [("agent_id", await agent_id(client, a)) for a in agent or ()]
    for name in task or ():
        query += [("task_id", i) for i in await _task_ids(client, name)]
    query += [(f"label.{key}", value) for key, value in pairs(label)]
    return grouped([*query, *pairs(where)])


def as_choice(query: Mapping[str, str | list[str]]) -> dict[str, Any]:
    """Return the query as the JSON of ``filter``, where a request's body chooses runs."""
    choice: dict[str, Any] = {}
    for name, value in query.items():
        kind, dot, key = name.partition(".")
        if dot and kind in _MAPS:
            choice.setdefault(_MAPS[kind], {})[key] = value if isinstance(value, str) else value[-1]
        elif name.startswith(("created_", "updated_")):
            choice[name] = value
        else:
            choice[name] = [value] if isinstance(value, str) else value
    return choice


_MAPS = {"label": "labels", "facet": "facets"}


async def agent_id(client: AsyncClient, name: str) -> str:
    """Return the id of an agent's label or id. Raises UnknownName."""
    if name.startswith(AGENT_ID):
        return name
    async for agent in client.agents.list():
        if agent.label == name:
            return agent.id
    raise UnknownName(f"there is no agent {name!r}; `workstead agents list` lists them")


async def _task_ids(client: AsyncClient, name: str) -> list[str]:
    if name.startswith(TASK_ID):
        return [name]
    found = [task.id async for task in client.tasks.list({"name": name}, limit=MAX_NAMED + 1)]
    if not found:
        raise UnknownName(f"there is no task {name!r}")
    return found[:MAX_NAMED]

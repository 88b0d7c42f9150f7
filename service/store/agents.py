"""Agents: scaffold + model + settings, immutable by digest, with a label that is unique in the project."""

from collections.abc import Sequence

from sqlalchemy import exists, select

from service.domain.agents import AgentSpec
from service.domain.errors import Conflict, NotFound
from service.domain.ids import new_id
from service.store import scaffolds
from service.store.catalogue import find_or_insert, storable
from service.store.database import Tx
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows import AgentRow
from service.store.tables import agents, runs
from service.store.tables_evaluations import evaluation_agents

LISTING = Listing(
    agents,
    AgentRow.of,
    sorts_by(created_at=Sort(agents.c.created_at), label=Sort(agents.c.label, str)),
    {
        "label": one_of(agents.c.label),
        "scaffold": one_of(agents.c.spec["scaffold"].astext),
        "scaffold_id": one_of(agents.c.scaffold_id),
        "model": one_of(agents.c.spec["model"].astext),
    },
)
_LABEL_CHARACTERS = 80


async def create(tx: Tx, project_id: str, spec: AgentSpec) -> tuple[AgentRow, bool]:
    """Return the project's agent with these parts and whether it is new; an existing one keeps its label.

    Raises NotFound("scaffold_not_found"), Conflict("label_taken").
    """
    scaffold = await scaffolds.find(tx, project_id, spec.scaffold)
    if scaffold is None:
        raise NotFound("scaffold_not_found", f"no scaffold {spec.scaffold}")
    body = storable(spec)
    digest = spec.digest(scaffold.digest)
    values = {"project_id": project_id, "scaffold_id": scaffold.id, "digest": digest, "spec": body}
    for label in _labels(spec, digest):
        row, created = await find_or_insert(tx, agents, {**values, "id": new_id("agt"), "label": label})
        if row is not None:
            return AgentRow.of(row), created
    detail = (
        f"another agent has the label {spec.label!r}; one that only a draft has made goes when the draft is deleted"
    )
    raise Conflict("label_taken", detail)


async def delete_unused(tx: Tx, project_id: str, agent_ids: Sequence[str]) -> None:
    """Forget those of these agents that no run and no evaluation has; their labels are free again."""
    mine = (agents.c.project_id == project_id, agents.c.id.in_(agent_ids))
    # Whoever is about to use one is waited for, so that the next statement sees it.
    await tx.execute(select(agents.c.id).where(*mine).order_by(agents.c.id).with_for_update())
    used = exists().where(runs.c.agent_id == agents.c.id) | exists().where(evaluation_agents.c.agent_id == agents.c.id)
    await tx.execute(agents.delete().where(*mine, ~used))


async def get(tx: Tx, project_id: str, agent_id: str) -> AgentRow | None:
    """Return the project's agent by id or label; null if there is none (or it is another project's)."""
    mine = (agents.c.project_id == project_id, (agents.c.id == agent_id) | (agents.c.label == agent_id))
    by_id_first = (agents.c.id != agent_id, agents.c.id)
    row = (await tx.execute(select(agents).where(*mine).order_by(*by_id_first).limit(1))).mappings().one_or_none()
    return None if row is None else AgentRow.of(row)


def _labels(spec: AgentSpec, digest: str) -> tuple[str, ...]:
    """A label of the caller's own must be free; one that we make gets a piece of the digest where it is taken."""
    if spec.label is not None:
        return (spec.label,)
    made, tail = spec.default_label(), f" #{digest[:8]}"
    return made, made[: _LABEL_CHARACTERS - len(tail)] + tail

"""What the agents, models, providers and scaffolds of a project are called: what blinded raters must not read."""

from sqlalchemy import select

from service.domain.blinding import Names
from service.store.database import Tx
from service.store.tables import agents, scaffolds
from service.store.tables_models import models

_MOST = 5000
_GENERIC = frozenset(
    {
        "command",
        "computer_use",
        "external",
        "media",
        "nop",
        "oracle",
        "person",
        "remote",
        "single_response",
        "tool_agent",
    }
)
"""Kinds of scaffolds that are ordinary words and no product's name."""


async def of_project(tx: Tx, project_id: str) -> Names:
    """Return all names, those of the newest where there are thousands."""
    found: list[str] = []
    spec = agents.c.spec
    query = select(agents.c.label, agents.c.id, spec["model"].astext, spec["scaffold"].astext)
    query = query.where(agents.c.project_id == project_id).order_by(agents.c.created_at.desc()).limit(_MOST)
    for label, id_, model, scaffold in await tx.execute(query):
        found += [label, id_, *([model] if model else []), scaffold.partition("@")[0]]
    known = select(models.c.name, models.c.spec["upstream_id"].astext, models.c.spec["provider"].astext)
    for row in await tx.execute(known.where(models.c.project_id == project_id).limit(_MOST)):
        found += [name for name in row if name]
    kinds = select(scaffolds.c.name, scaffolds.c.manifest["kind"].astext).where(scaffolds.c.project_id == project_id)
    for row in await tx.execute(kinds.limit(_MOST)):
        found += [name for name in row if name and name not in _GENERIC]
    return Names.of(found)

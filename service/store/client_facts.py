"""Facts of simulated clients that were made for a task which did not bring any (NEEDS A23): once per task."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import clean_json
from service.store.blob_refs import add_refs
from service.store.database import Tx
from service.store.rows_models import ClientFactsRow
from service.store.tables_models import client_facts

Blob = tuple[str, int]
"""sha256, bytes."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the facts follow from."""

    model: str
    template: str
    seed: int


@dataclass(frozen=True, slots=True)
class NewFacts:
    facts: Blob
    template_text: Blob
    prompt: Blob
    recipe: Recipe
    reported_model: str | None
    usage: dict[str, Any] | None
    author: str
    operation_id: str


async def get(tx: Tx, project_id: str, task_id: str) -> ClientFactsRow | None:
    """Return what was made for the project's task; null: nothing."""
    mine = (client_facts.c.task_id == task_id, client_facts.c.project_id == project_id)
    row = (await tx.execute(select(client_facts).where(*mine))).mappings().one_or_none()
    return None if row is None else ClientFactsRow.of(row)


async def put(tx: Tx, project_id: str, task_id: str, new: NewFacts) -> tuple[ClientFactsRow, bool]:
    """Keep them with the task, unless it has some: then those stay. Return what it has, and whether it is new."""
    values = {
        "task_id": task_id,
        "project_id": project_id,
        "sha256": new.facts[0],
        "size_bytes": new.facts[1],
        **asdict(new.recipe),
        "reported_model": clean_json(new.reported_model),
        "template_sha256": new.template_text[0],
        "prompt_sha256": new.prompt[0],
        "usage": new.usage,
        "author": new.author,
        "operation_id": new.operation_id,
    }
    query = insert(client_facts).values(values).on_conflict_do_nothing().returning(client_facts)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        kept = await get(tx, project_id, task_id)
        assert kept is not None
        return kept, False
    await add_refs(tx, project_id, "task", task_id, [new.facts, new.template_text, new.prompt])
    return ClientFactsRow.of(row), True

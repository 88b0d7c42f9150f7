"""The model catalogue of a project. Entries are replaced as a whole; agents name them, runs keep what they were given.

Use it as ``from service.store import models``.
"""

from typing import Any

from sqlalchemy import func, select

from service.domain.cleaning import clean_json
from service.domain.errors import Conflict
from service.domain.models import ModelSpec
from service.store.database import Tx
from service.store.entries import Entries
from service.store.listing import Listing, one_of, sorts_by
from service.store.paging import Sort
from service.store.rows_models import ModelRow
from service.store.tables import agents, runs
from service.store.tables_models import breakers, models

LISTING = Listing(
    models,
    ModelRow.of,
    sorts_by(created_at=Sort(models.c.created_at), name=Sort(models.c.name, str)),
    {
        "name": one_of(models.c.name),
        "provider": one_of(models.c.spec["provider"].astext),
        "dialect": one_of(models.c.spec["dialect"].astext),
        "vendor": one_of(models.c.spec["vendor"].astext),
        "family": one_of(models.c.spec["family"].astext),
    },
    version=models.c.revision,
)


ENTRIES = Entries[ModelSpec, ModelRow](models, "model", "mdl", ModelRow.of)
create, get, find = ENTRIES.create, ENTRIES.get, ENTRIES.find


async def load(tx: Tx, model_id: str) -> ModelRow | None:
    """Return a model of any project, for the gateway and for operations."""
    row = (await tx.execute(select(models).where(models.c.id == model_id))).mappings().one_or_none()
    return None if row is None else ModelRow.of(row)


async def replace(tx: Tx, project_id: str, model_id: str, spec: ModelSpec, *, private: bool) -> ModelRow | None:
    """See :meth:`Entries.replace`; what was checked before is forgotten as well."""
    return await ENTRIES.replace(
        tx, project_id, model_id, spec, private=private, checked_at=None, check_result=None
    )  # fmt: skip


async def delete(tx: Tx, project_id: str, model_id: str) -> bool:
    """Delete an entry that nothing names; False if there is no such model. Raises Conflict("model_in_use")."""
    row = await ENTRIES.locked(tx, project_id, model_id)
    if row is None:
        return False
    named = select(agents.c.id).where(agents.c.project_id == project_id, agents.c.spec["model"].astext == row.name)
    ran = select(runs.c.id).where(runs.c.model_id == model_id)
    for query in (named, ran):
        user = (await tx.execute(query.limit(1))).scalar_one_or_none()
        if user is not None:
            raise Conflict("model_in_use", f"{user} needs it", user=user)
    await tx.execute(breakers.delete().where(breakers.c.model_id == model_id))
    return await ENTRIES.delete(tx, project_id, model_id)


async def checked(tx: Tx, model_id: str, revision: int, result: dict[str, Any]) -> bool:
    """Keep what a check found, unless the entry has become another one meanwhile."""
    query = models.update().where(models.c.id == model_id, models.c.revision == revision)
    values = {"checked_at": func.clock_timestamp(), "check_result": clean_json(result)}
    changed = await tx.execute(query.values(**values, revision=models.c.revision + 1).returning(models.c.id))
    return changed.one_or_none() is not None

"""The model catalogue of a project. Entries are replaced as a whole; agents name them, runs keep what they were given.

Use it as ``from service.store import models``.
"""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.errors import Conflict, Invalid
from service.domain.ids import new_id
from service.domain.models import ModelSpec
from service.store import credentials
from service.store.catalogue import storable
from service.store.cleaning import clean_json
from service.store.database import Tx
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


async def create(tx: Tx, project_id: str, spec: ModelSpec, *, private: bool) -> tuple[ModelRow, bool]:
    """Return the entry and whether it is new; the same one again is found. Raises Conflict("model_exists")."""
    values = {"id": new_id("mdl"), "project_id": project_id, "name": spec.name, "spec": storable(spec)}
    query = insert(models).values(**values, private=private).on_conflict_do_nothing().returning(models)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is not None:
        return ModelRow.of(row), True
    found = await find(tx, project_id, spec.name)
    if found is None or found.spec != spec:
        raise Conflict(
            "model_exists", f"the catalogue has another model {spec.name!r}: replace it, or take another name"
        )
    return found, False


async def get(tx: Tx, project_id: str, model_id: str) -> ModelRow | None:
    """Return the project's model; null if there is none (or it is another project's)."""
    row = (await tx.execute(select(models).where(*_mine(project_id, model_id)))).mappings().one_or_none()
    return None if row is None else ModelRow.of(row)


async def find(tx: Tx, project_id: str, name: str) -> ModelRow | None:
    """Return the project's model of this name."""
    query = select(models).where(models.c.project_id == project_id, models.c.name == name)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ModelRow.of(row)


async def load(tx: Tx, model_id: str) -> ModelRow | None:
    """Return a model of any project, for the gateway and for operations."""
    row = (await tx.execute(select(models).where(models.c.id == model_id))).mappings().one_or_none()
    return None if row is None else ModelRow.of(row)


async def replace(tx: Tx, project_id: str, model_id: str, spec: ModelSpec, *, private: bool) -> ModelRow | None:
    """Replace what the entry says; what was checked before is forgotten. Null if there is no such model.

    A secret stays with the address that it was brought for: when that changes, it is forgotten. Raises
    Invalid("name_changed"): agents name it.
    """
    before = await _locked(tx, project_id, model_id)
    if before is None:
        return None
    if before.name != spec.name:
        raise Invalid("name_changed", "agents name this model: make a new one instead")
    kept: dict[str, Any] = {}
    if before.credential_id is not None and before.spec.base_url != spec.base_url:
        await credentials.drop(tx, before.credential_id)
        kept = {"credential_id": None}
    forgotten = {"checked_at": None, "check_result": None}
    query = models.update().where(*_mine(project_id, model_id))
    query = query.values(spec=storable(spec), private=private, revision=models.c.revision + 1, **forgotten, **kept)
    return ModelRow.of((await tx.execute(query.returning(models))).mappings().one())


async def delete(tx: Tx, project_id: str, model_id: str) -> bool:
    """Delete an entry that nothing names; False if there is no such model. Raises Conflict("model_in_use")."""
    row = await _locked(tx, project_id, model_id)
    if row is None:
        return False
    named = select(agents.c.id).where(agents.c.project_id == project_id, agents.c.spec["model"].astext == row.name)
    ran = select(runs.c.id).where(runs.c.model_id == model_id)
    for query in (named, ran):
        user = (await tx.execute(query.limit(1))).scalar_one_or_none()
        if user is not None:
            raise Conflict("model_in_use", f"{user} needs it", user=user)
    await tx.execute(breakers.delete().where(breakers.c.model_id == model_id))
    await tx.execute(models.delete().where(*_mine(project_id, model_id)))
    if row.credential_id is not None:
        await credentials.drop(tx, row.credential_id)
    return True


async def checked(tx: Tx, model_id: str, revision: int, result: dict[str, Any]) -> bool:
    """Keep what a check found, unless the entry has become another one meanwhile."""
    query = models.update().where(models.c.id == model_id, models.c.revision == revision)
    values = {"checked_at": func.clock_timestamp(), "check_result": clean_json(result)}
    changed = await tx.execute(query.values(**values, revision=models.c.revision + 1).returning(models.c.id))
    return changed.one_or_none() is not None


async def _locked(tx: Tx, project_id: str, model_id: str) -> ModelRow | None:
    query = select(models).where(*_mine(project_id, model_id)).with_for_update()
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else ModelRow.of(row)


def _mine(project_id: str, model_id: str) -> Any:
    return models.c.project_id == project_id, models.c.id == model_id

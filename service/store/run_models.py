"""What a run may ask, as the catalogue says now: models and gateway services by name, and the attempt's tokens."""

from collections.abc import Sequence

from sqlalchemy import select

from service.domain.grants import GrantedModel, GrantedService
from service.domain.models import ModelSpec
from service.store.database import Tx
from service.store.tables import tokens
from service.store.tables_models import models, services


async def granted_models(tx: Tx, project_id: str, names: Sequence[str]) -> list[GrantedModel]:
    """Return the project's models of these names, in their order; what does not exist is left out."""
    query = select(models).where(models.c.project_id == project_id, models.c.name.in_(list(names)))
    found = {row["name"]: row for row in (await tx.execute(query)).mappings()}
    rows = [found[name] for name in dict.fromkeys(names) if name in found]
    return [
        GrantedModel(
            id=row["id"],
            spec=ModelSpec.model_validate(row["spec"]),
            credential_id=row["credential_id"],
            private=row["private"],
        )
        for row in rows
    ]


async def granted_services(tx: Tx, project_id: str, names: Sequence[str]) -> list[GrantedService]:
    """Return the project's gateway services of these names; what does not exist is left out."""
    query = select(services.c.id, services.c.name).where(
        services.c.project_id == project_id, services.c.name.in_(list(names))
    )
    return [GrantedService(id=row.id, name=row.name) for row in await tx.execute(query)]


async def token_hashes(tx: Tx, run_id: str, attempt: int) -> list[str]:
    """Return the hex sha256 of the attempt's run tokens that were not revoked, newest first."""
    query = (
        select(tokens.c.hash)
        .where(tokens.c.run_id == run_id, tokens.c.attempt == attempt, tokens.c.revoked_at.is_(None))
        .order_by(tokens.c.created_at.desc())
        .limit(64)
    )
    return [bytes(value).hex() for value in (await tx.execute(query)).scalars()]

"""Credentials: brought once, sealed for the gateway, never given back. Who may have one is its owner's row."""

import hashlib

from sqlalchemy import Table, func, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.credentials import Purpose
from service.domain.errors import Unavailable
from service.domain.ids import new_id
from service.store.database import Tx
from service.store.rows_models import CredentialRow, SealingKeyRow
from service.store.sealed_box import seal
from service.store.tables_models import credentials, images, models, sealing_keys, services

OWNERS: dict[str, Table] = {"model": models, "service": services, "image": images}


async def register_key(tx: Tx, key_id: str, public_key: bytes) -> None:
    """Make the key the one that is sealed with from now on. The gateway calls it at start."""
    query = insert(sealing_keys).values(id=key_id, public_key=public_key)
    query = query.on_conflict_do_update(index_elements=["id"], set_={"created_at": func.clock_timestamp()})
    await tx.execute(query)


async def newest_key(tx: Tx) -> SealingKeyRow | None:
    """Return the key that credentials are sealed with; what was sealed with another one cannot be read any more."""
    query = select(sealing_keys).order_by(sealing_keys.c.created_at.desc(), sealing_keys.c.id).limit(1)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else SealingKeyRow.of(row)


async def put(
    tx: Tx, owner: str, project_id: str, owner_id: str, purpose: Purpose, secret: str
) -> CredentialRow | None:
    """Give the project's model or service (``owner``) this secret; what it had is overwritten and keeps its id.

    Null if the project has no such owner. Raises Unavailable("gateway_unavailable") while no gateway has a key.
    """
    table = OWNERS[owner]
    mine = (table.c.id == owner_id, table.c.project_id == project_id)
    found = (await tx.execute(select(table).where(*mine).with_for_update())).mappings().one_or_none()
    if found is None:
        return None
    key = await newest_key(tx)
    if key is None:
        raise Unavailable("gateway_unavailable", "no gateway has started yet, and only it can be given a secret")
    credential_id = found["credential_id"] or new_id("cred")
    values = {
        "purpose": purpose,
        "key_id": key.id,
        "sealed": seal(key.public_key, secret.encode(), credential_id),
        "hint": hashlib.sha256(secret.encode()).hexdigest()[:8],
    }
    new = insert(credentials).values(id=credential_id, project_id=project_id, **values)
    changed = {**values, "replaced_at": func.clock_timestamp()}
    query = new.on_conflict_do_update(index_elements=["id"], set_=changed).returning(credentials)
    row = (await tx.execute(query)).mappings().one()
    await tx.execute(table.update().where(*mine).values(credential_id=credential_id, revision=table.c.revision + 1))
    return CredentialRow.of(row)


async def remove(tx: Tx, owner: str, project_id: str, owner_id: str) -> bool | None:
    """Forget the secret; False if there was none, null if the project has no such owner."""
    table = OWNERS[owner]
    mine = (table.c.id == owner_id, table.c.project_id == project_id)
    found = (await tx.execute(select(table).where(*mine).with_for_update())).mappings().one_or_none()
    if found is None:
        return None
    if found["credential_id"] is None:
        return False
    await drop(tx, found["credential_id"])
    await tx.execute(table.update().where(*mine).values(credential_id=None, revision=table.c.revision + 1))
    return True


async def drop(tx: Tx, credential_id: str) -> None:
    await tx.execute(credentials.delete().where(credentials.c.id == credential_id))


async def load(tx: Tx, credential_id: str) -> CredentialRow | None:
    """Return a credential of any project, for the gateway."""
    row = (await tx.execute(select(credentials).where(credentials.c.id == credential_id))).mappings().one_or_none()
    return None if row is None else CredentialRow.of(row)


async def of_project(tx: Tx, project_id: str, ids: list[str]) -> dict[str, CredentialRow]:
    """Return those of the project's credentials by id."""
    query = select(credentials).where(credentials.c.project_id == project_id, credentials.c.id.in_(ids))
    return {row["id"]: CredentialRow.of(row) for row in (await tx.execute(query)).mappings()}

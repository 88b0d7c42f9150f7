"""A stored secret as clients see it: that it is there, what for, and whether the gateway can still read it."""

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from service.api.auth import Caller
from service.api.rendering import Timestamp, View
from service.domain.credentials import Purpose
from service.domain.errors import Conflict, NotFound
from service.store import audit, credentials
from service.store.database import Tx
from service.store.rows_models import CredentialRow, SealingKeyRow


class NewCredential(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    secret: SecretStr = Field(min_length=1, max_length=8192)
    """The key; visible ASCII without spaces. It is sealed for the gateway at once and never given back."""
    purpose: Purpose = Purpose.MODEL
    """model | judge | service. A judge's key never serves an agent."""

    @field_validator("secret")
    @classmethod
    def _fits_a_header(cls, secret: SecretStr) -> SecretStr:
        if not all("!" <= c <= "~" for c in secret.get_secret_value()):
            raise ValueError("visible ASCII without spaces")
        return secret


class CredentialState(View):
    purpose: str
    """model | judge | service"""
    state: str
    """ready | unreadable: sealed for another gateway key, to be brought again"""
    hint: str
    """The start of the secret's SHA-256, to tell keys apart."""
    created_at: Timestamp
    replaced_at: Timestamp | None


def view_of(row: CredentialRow, key: SealingKeyRow | None) -> CredentialState:
    readable = key is not None and key.id == row.key_id
    return CredentialState(
        purpose=row.purpose,
        state="ready" if readable else "unreadable",
        hint=row.hint,
        created_at=row.created_at,
        replaced_at=row.replaced_at,
    )


async def put_credential(tx: Tx, caller: Caller, owner: str, owner_id: str, new: NewCredential) -> CredentialState:
    """Seal and store; whoever did it is in the audit log, the secret is not. Raises NotFound, Invalid, Unavailable."""
    secret = new.secret.get_secret_value()
    row = await credentials.put(tx, owner, caller.project_id, owner_id, new.purpose, secret)
    if row is None:
        raise NotFound("not_found")
    detail = {"purpose": row.purpose, "hint": row.hint, "credential": row.id}
    await audit.record(tx, caller.project_id, caller.token.id, f"{owner}.credential.put", owner_id, detail)
    return view_of(row, await credentials.newest_key(tx))


async def read_credential(tx: Tx, caller: Caller, credential_id: str | None) -> CredentialState:
    """Raises NotFound where there is none."""
    found = {} if credential_id is None else await credentials.of_project(tx, caller.project_id, [credential_id])
    for row in found.values():
        return view_of(row, await credentials.newest_key(tx))
    raise NotFound("not_found")


async def remove_credential(tx: Tx, caller: Caller, owner: str, owner_id: str) -> None:
    """Raises NotFound (no such owner), Conflict("no_credential")."""
    removed = await credentials.remove(tx, owner, caller.project_id, owner_id)
    if removed is None:
        raise NotFound("not_found")
    if not removed:
        raise Conflict("no_credential", "there is no credential to remove")
    await audit.record(tx, caller.project_id, caller.token.id, f"{owner}.credential.remove", owner_id, {})

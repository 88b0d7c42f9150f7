"""What tasks, scaffolds and agents have in common: immutable rows found by digest, made at most once."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from sqlalchemy import RowMapping, Table, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.cleaning import is_clean
from service.domain.errors import Invalid
from service.domain.tasks import FileRef
from service.store.blob_refs import add_refs, project_sizes
from service.store.database import Tx

NAMED_MISSING = 1000
"""Most digests that an error names."""


def storable(manifest: BaseModel) -> dict[str, Any]:
    """Return the JSON form that is stored. Raises Invalid("unstorable_text") where that would not be what came in."""
    try:
        body = manifest.model_dump(mode="json")
        if is_clean(body):
            return body
    except PydanticSerializationError:
        pass
    raise Invalid(
        "unstorable_text", "text has NUL or half a surrogate pair, a number is too large, or nesting too deep"
    )


async def find_or_insert(tx: Tx, table: Table, values: dict[str, Any]) -> tuple[RowMapping | None, bool]:
    """Insert ``values``; return (row, True), or the row of the same project and digest, or null if another clashes."""
    query = insert(table).values(values).on_conflict_do_nothing().returning(table)
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is not None:
        return row, True
    same = (table.c.project_id == values["project_id"], table.c.digest == values["digest"])
    return (await tx.execute(select(table).where(*same))).mappings().one_or_none(), False


async def take_refs(tx: Tx, project_id: str, owner_kind: str, owner_id: str, files: Iterable[FileRef]) -> None:
    """Let the owner refer to ``files``, whose sizes are checked.

    Raises Invalid("missing_blobs", missing=[…]) when the project has not uploaded them all, Invalid("wrong_size").
    """
    wanted = {f.sha256: f.size_bytes for f in files}
    have = await project_sizes(tx, project_id, wanted, hold=True)
    missing = sorted(set(wanted) - set(have))
    if missing:
        raise Invalid("missing_blobs", f"{len(missing)} files are not uploaded", missing=missing[:NAMED_MISSING])
    wrong = sorted(digest for digest, size in wanted.items() if have[digest] != size)
    if wrong:
        raise Invalid("wrong_size", "size_bytes differs from the uploaded file", digests=wrong[:NAMED_MISSING])
    await add_refs(tx, project_id, owner_kind, owner_id, wanted.items())

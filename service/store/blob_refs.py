"""Who needs which blob. A ref is made in its owner's transaction, after the file is durable (CONTRACTS 10)."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from sqlalchemy import delete, func, select, tuple_

from service.store.database import Tx
from service.store.many_rows import arrays_of, insert_of_many
from service.store.tables import blob_refs

UPLOAD = "upload"
PICTURE = "picture"
"""Owner of a run's recorded pictures: its id is the run's."""
FILM = "film"
"""Owner of the film of a run: its id is the run's."""
EXPORT = "export"
"""Owner of an export of results: its id is the operation's that made it."""
_COLUMNS = ("digest", "size_bytes", "owner_kind", "owner_id", "project_id")
_ADD = insert_of_many(blob_refs, _COLUMNS, tail="ON CONFLICT DO NOTHING")
UPLOADS_KEPT = timedelta(days=7)
"""How long a client may take from uploading a file to naming it in a task."""


async def add_refs(tx: Tx, project_id: str, owner_kind: str, owner_id: str, blobs: Iterable[tuple[str, int]]) -> None:
    """Note that the owner needs ``blobs`` (digest, size in bytes); repeating it changes nothing."""
    await add_refs_of_many(tx, project_id, owner_kind, {owner_id: dict(blobs)})


async def add_refs_of_many(tx: Tx, project_id: str, owner_kind: str, owners: Mapping[str, Mapping[str, int]]) -> None:
    """As :func:`add_refs` for many owners: ``{owner_id: {digest: bytes}}``."""
    rows = [
        {"digest": d, "size_bytes": size, "owner_kind": owner_kind, "owner_id": owner_id, "project_id": project_id}
        for d, owner_id, size in sorted((d, o, size) for o, blobs in owners.items() for d, size in blobs.items())
    ]
    if rows:
        await tx.execute(_ADD, arrays_of(blob_refs, _COLUMNS, rows))


async def project_has(tx: Tx, project_id: str, digests: Iterable[str]) -> set[str]:
    """Return those of ``digests`` that the project has a ref to."""
    return set(await project_sizes(tx, project_id, digests))


async def project_sizes(tx: Tx, project_id: str, digests: Iterable[str], *, hold: bool = False) -> dict[str, int]:
    """Return the sizes of those of ``digests`` that the project has.

    With ``hold`` their refs cannot be dropped before the transaction ends, so that the caller's own refs follow
    without a gap in which the collector might remove the file.
    """
    wanted = sorted(set(digests))
    query = select(blob_refs.c.digest, blob_refs.c.size_bytes).where(
        blob_refs.c.project_id == project_id, blob_refs.c.digest.in_(wanted)
    )
    if hold:
        query = query.order_by(blob_refs.c.digest, blob_refs.c.owner_kind, blob_refs.c.owner_id)
        query = query.with_for_update(read=True)
    return {row.digest: row.size_bytes for row in await tx.execute(query)} if wanted else {}


async def owned_size(tx: Tx, owner_kind: str, owner_id: str, digest: str) -> int | None:
    """Return the bytes of a blob that this owner needs; None: it needs no such blob."""
    owned = (blob_refs.c.owner_kind == owner_kind, blob_refs.c.owner_id == owner_id, blob_refs.c.digest == digest)
    return (await tx.execute(select(blob_refs.c.size_bytes).where(*owned))).scalar_one_or_none()


async def one_owned(tx: Tx, owner_kind: str, owner_id: str) -> tuple[str, int] | None:
    """Return a blob (digest, bytes) that this owner needs; null: it needs none."""
    mine = (blob_refs.c.owner_kind == owner_kind, blob_refs.c.owner_id == owner_id)
    query = select(blob_refs.c.digest, blob_refs.c.size_bytes).where(*mine).limit(1)
    row = (await tx.execute(query)).one_or_none()
    return None if row is None else (row.digest, row.size_bytes)


async def drop_old_uploads(tx: Tx, older_than: timedelta = UPLOADS_KEPT) -> int:
    """Forget uploads that are ``older_than`` (database's clock); what something was made of stays by that ref.

    Returns how many were forgotten.
    """
    before = func.clock_timestamp() - older_than
    query = delete(blob_refs).where(blob_refs.c.owner_kind == UPLOAD, blob_refs.c.created_at < before)
    return (await tx.execute(query)).rowcount


async def drop_refs(tx: Tx, owner_kind: str, owner_id: str) -> None:
    """Forget what the owner needed; the collector removes files that nobody needs."""
    owned = tuple_(blob_refs.c.owner_kind, blob_refs.c.owner_id) == (owner_kind, owner_id)
    await tx.execute(delete(blob_refs).where(owned))


async def referenced(tx: Tx, digests: Iterable[str]) -> set[str]:
    """Return those of ``digests`` that anybody needs, in any project. For the collector."""
    query = select(blob_refs.c.digest).where(blob_refs.c.digest.in_(list(digests))).distinct()
    return set((await tx.execute(query)).scalars())

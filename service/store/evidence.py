"""Evidence documents: one per (project, deliverable, version of what makes them), and which of them a job must make."""

from dataclasses import dataclass

from sqlalchemy import Executable, and_, case, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from service.domain.evidence import VERSION, EvidenceState
from service.domain.ids import new_id
from service.store.blob_refs import add_refs, drop_refs
from service.store.database import Tx
from service.store.notifications import EVIDENCE
from service.store.phases import notify
from service.store.rows_grading import EvidenceRow
from service.store.tables import blob_refs, runs
from service.store.tables_grading import evidence_documents

OWNER = "evidence"
"""Kind of owner of the blobs: the document and its pictures."""
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Made:
    """A finished document."""

    sha256: str
    size_bytes: int
    files: int
    failed_files: int
    omitted_chars: int
    took_s: float
    pictures: dict[str, int]
    """Digest → bytes."""


async def request(tx: Tx, project_id: str, digest: str, *, queued: bool) -> EvidenceRow:
    """Find or create the document of a deliverable under the present version; one that was unavailable is pending again.

    ``queued``: no grading will make it, so a job must. Wakes the makers of documents.
    """
    c = evidence_documents.c
    values = {"id": new_id("evd"), "project_id": project_id, "digest": digest, "version": VERSION, "queued": queued}
    made = insert(evidence_documents).values(values)
    open_ = c.state != EvidenceState.READY
    again = {
        "state": case((open_, EvidenceState.PENDING.value), else_=c.state),
        "cause": None,
        "tries": case((c.state == EvidenceState.UNAVAILABLE, 0), else_=c.tries),
        "queued": or_(c.queued, and_(made.excluded.queued, open_)),
    }
    query = made.on_conflict_do_update(constraint="uq_evidence_documents_once", set_=again).returning(
        evidence_documents
    )
    row = EvidenceRow.of((await tx.execute(query)).mappings().one())
    if row.queued:
        await notify(tx, EVIDENCE, row.id)
    return row


async def find(tx: Tx, project_id: str, digest: str) -> EvidenceRow | None:
    """Return the document of a deliverable to show: a finished one before all others, then the present version's."""
    c = evidence_documents.c
    mine = (c.project_id == project_id, c.digest == digest)
    order = ((c.state == EvidenceState.READY).desc(), (c.version == VERSION).desc(), c.created_at.desc())
    return await _one(tx, select(evidence_documents).where(*mine).order_by(*order).limit(1))


async def present(tx: Tx, project_id: str, digest: str) -> EvidenceRow | None:
    """Return the document of a deliverable under the present version."""
    c = evidence_documents.c
    mine = (c.project_id == project_id, c.digest == digest, c.version == VERSION)
    return await _one(tx, select(evidence_documents).where(*mine))


async def by_id(tx: Tx, document_id: str) -> EvidenceRow | None:
    return await _one(tx, select(evidence_documents).where(evidence_documents.c.id == document_id))


async def picture_bytes(tx: Tx, row: EvidenceRow, sha256: str) -> int | None:
    """Return how large a picture of the document is; null for what is none."""
    c = blob_refs.c
    mine = (c.owner_kind == OWNER, c.owner_id == row.id, c.digest == sha256, c.digest != row.sha256)
    return (await tx.execute(select(c.size_bytes).where(*mine))).scalar_one_or_none()


async def open_ids(tx: Tx) -> list[str]:
    """Return the documents that a job must make, oldest first, at most 1 000."""
    c = evidence_documents.c
    return [*(await tx.execute(select(c.id).where(c.queued).order_by(c.created_at).limit(_MOST))).scalars()]


async def run_with(tx: Tx, row: EvidenceRow) -> str | None:
    """Return the oldest run of the project that delivered this."""
    mine = (runs.c.project_id == row.project_id, runs.c.deliverable_digest == row.digest)
    return (await tx.execute(select(runs.c.id).where(*mine).order_by(runs.c.created_at).limit(1))).scalar_one_or_none()


async def start(tx: Tx, document_id: str) -> EvidenceRow | None:
    """Count a try and return the document as it then is; null if it is gone."""
    c = evidence_documents.c
    query = evidence_documents.update().where(c.id == document_id).values(tries=c.tries + 1)
    return await _one(tx, query.returning(evidence_documents))


async def finish(tx: Tx, document_id: str, made: Made) -> None:
    """Keep the document and its blobs; one that is there already stays."""
    c = evidence_documents.c
    mine = (c.id == document_id, c.state != EvidenceState.READY)
    columns = {
        "state": EvidenceState.READY, "cause": None, "sha256": made.sha256, "size_bytes": made.size_bytes, "files": made.files,
        "failed_files": made.failed_files, "omitted_chars": made.omitted_chars, "took_s": made.took_s,
        "made_at": func.clock_timestamp(),
    }  # fmt: skip
    row = await _one(tx, evidence_documents.update().where(*mine).values(columns).returning(evidence_documents))
    if row is not None:
        blobs = {**made.pictures, made.sha256: made.size_bytes}
        await add_refs(tx, row.project_id, OWNER, row.id, blobs.items())


async def fail(tx: Tx, document_id: str, cause: str) -> None:
    """Say that it could not be made. The tries begin anew: those count starts that had no end."""
    c = evidence_documents.c
    mine = (c.id == document_id, c.state != EvidenceState.READY)
    columns = {"state": EvidenceState.UNAVAILABLE, "cause": cause, "queued": False, "tries": 0}
    await tx.execute(evidence_documents.update().where(*mine).values(columns))


async def forget(tx: Tx, document_id: str) -> None:
    """Have a document made anew whose blob is lost."""
    await drop_refs(tx, OWNER, document_id)
    columns = {"state": EvidenceState.PENDING, "sha256": None, "size_bytes": None}
    await tx.execute(evidence_documents.update().where(evidence_documents.c.id == document_id).values(columns))


async def unqueue(tx: Tx, document_id: str) -> None:
    await tx.execute(evidence_documents.update().where(evidence_documents.c.id == document_id).values(queued=False))


async def drop_unused(tx: Tx, project_id: str, digest: str) -> None:
    """Delete the documents of a deliverable that no run of the project has (any more), and let go of their blobs."""
    c = evidence_documents.c
    used = select(runs.c.id).where(runs.c.project_id == project_id, runs.c.deliverable_digest == digest).exists()
    query = delete(evidence_documents).where(c.project_id == project_id, c.digest == digest, ~used).returning(c.id)
    for document_id in (await tx.execute(query)).scalars().all():
        await drop_refs(tx, OWNER, document_id)


async def _one(tx: Tx, query: Executable) -> EvidenceRow | None:
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else EvidenceRow.of(row)

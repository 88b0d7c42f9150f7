"""Evidence documents: one per (project, deliverable, version of what makes them), and which of them a job must make."""

from dataclasses import dataclass

from sqlalchemy import delete, func, select

from service.domain.evidence import VERSION, EvidenceState
from service.store.blob_refs import add_refs, drop_refs
from service.store.database import Tx
from service.store.made_once import MadeOnce
from service.store.notifications import EVIDENCE
from service.store.rows_grading import EvidenceRow
from service.store.tables import blob_refs, runs
from service.store.tables_grading import evidence_documents

OWNER = "evidence"
"""Kind of owner of the blobs: the document and its pictures."""

_DOCUMENTS = MadeOnce(
    evidence_documents, EvidenceRow.of, "evd", lambda: VERSION, "uq_evidence_documents_once", EVIDENCE
)
request, find, present, by_id = _DOCUMENTS.request, _DOCUMENTS.find, _DOCUMENTS.present, _DOCUMENTS.by_id
open_ids, start, unqueue = _DOCUMENTS.open_ids, _DOCUMENTS.start, _DOCUMENTS.unqueue


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


async def picture_bytes(tx: Tx, row: EvidenceRow, sha256: str) -> int | None:
    """Return how large a picture of the document is; null for what is none."""
    c = blob_refs.c
    mine = (c.owner_kind == OWNER, c.owner_id == row.id, c.digest == sha256, c.digest != row.sha256)
    return (await tx.execute(select(c.size_bytes).where(*mine))).scalar_one_or_none()


async def run_with(tx: Tx, row: EvidenceRow) -> str | None:
    """Return the oldest run of the project that delivered this."""
    mine = (runs.c.project_id == row.project_id, runs.c.deliverable_digest == row.digest)
    return (await tx.execute(select(runs.c.id).where(*mine).order_by(runs.c.created_at).limit(1))).scalar_one_or_none()


async def finish(tx: Tx, document_id: str, made: Made) -> None:
    """Keep the document and its blobs; one that is there already stays."""
    c = evidence_documents.c
    mine = (c.id == document_id, c.state != EvidenceState.READY)
    columns = {
        "state": EvidenceState.READY, "cause": None, "sha256": made.sha256, "size_bytes": made.size_bytes, "files": made.files,
        "failed_files": made.failed_files, "omitted_chars": made.omitted_chars, "took_s": made.took_s,
        "made_at": func.clock_timestamp(),
    }  # fmt: skip
    row = await _DOCUMENTS.one(
        tx, evidence_documents.update().where(*mine).values(columns).returning(evidence_documents)
    )
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


async def drop_unused(tx: Tx, project_id: str, digest: str) -> None:
    """Delete the documents of a deliverable that no run of the project has (any more), and let go of their blobs."""
    query = delete(evidence_documents).where(*_DOCUMENTS.unused(project_id, digest)).returning(evidence_documents.c.id)
    for document_id in (await tx.execute(query)).scalars().all():
        await drop_refs(tx, OWNER, document_id)

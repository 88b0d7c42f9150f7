"""Where the evidence document of a deliverable is, for people who rate it."""

from sqlalchemy import select

from service.domain.evidence import EvidenceState
from service.store.database import Tx
from service.store.rows_grading import EvidenceRow
from service.store.tables_grading import evidence_documents


async def of_deliverable(tx: Tx, project_id: str, digest: str) -> EvidenceRow | None:
    """Return the newest document that is ready, else whatever stands of one; null where nobody asked for any."""
    c = evidence_documents.c
    query = select(evidence_documents).where(c.project_id == project_id, c.digest == digest)
    query = query.order_by((c.state == EvidenceState.READY).desc(), c.created_at.desc()).limit(1)
    row = (await tx.execute(query)).mappings().one_or_none()
    return None if row is None else EvidenceRow.of(row)

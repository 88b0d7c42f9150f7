"""What of an item an annotator is shown: read anew for each vote, so that memory stays small however many items there are."""

import asyncio
from dataclasses import dataclass
from functools import partial
from time import monotonic

from service.domain.annotations import MOST_TEXT, AnnotationState, Target
from service.domain.errors import NotFound, TooLarge
from service.domain.evidence import EvidenceState
from service.lifecycle.annotations.wording import Shown, of_document, of_task, of_text
from service.lifecycle.evidence import read_document
from service.store import evidence, runs, tasks
from service.store.annotations import SetTarget
from service.store.blobs import BlobStore
from service.store.database import Database, Tx, retrying
from service.store.rows_grading import EvidenceRow

EVIDENCE_S = 600.0
"""How long the making of one evidence document is waited for."""
LOOK_EVERY_S = 1.0
_TEXT_BYTES = 4 * MOST_TEXT


@dataclass(frozen=True, slots=True)
class NotShown:
    """There is nothing to ask about."""

    state: AnnotationState
    """Excluded for good, or failed for now."""
    cause: str


@dataclass(frozen=True, slots=True)
class Showing:
    db: Database
    blobs: BlobStore
    project_id: str
    about: Target
    database_patience_s: float = 600.0

    async def of(self, one: SetTarget) -> Shown | NotShown:
        """Raises Unavailable (database away for long)."""
        if one.text_sha256 is not None:
            return await self._text(one.text_sha256)
        if one.task_id is None:
            return await self._deliverable(one.target)
        found = await retrying(
            self.db, partial(tasks.manifests, project_id=self.project_id, task_ids=[one.task_id]),
            self.database_patience_s,
        )  # fmt: skip
        return of_task(found[one.task_id], self.about)

    async def _text(self, sha256: str) -> Shown | NotShown:
        try:
            data = await asyncio.to_thread(self.blobs.read_bytes, sha256, _TEXT_BYTES)
        except (NotFound, TooLarge):
            return NotShown(AnnotationState.FAILED, "text_missing")
        return of_text(data.decode(errors="replace"))

    async def _deliverable(self, run_id: str) -> Shown | NotShown:
        until = monotonic() + EVIDENCE_S
        wish = True
        while True:
            row = await retrying(self.db, partial(self._document, run_id=run_id, wish=wish), self.database_patience_s)
            if row is None:
                return NotShown(AnnotationState.EXCLUDED, "deliverable_missing")
            if row.state is EvidenceState.READY:
                document = await asyncio.to_thread(read_document, self.blobs, row)
                if document is not None:
                    return of_document(row.digest, document)
                return NotShown(AnnotationState.FAILED, "evidence_missing")
            if row.state is EvidenceState.UNAVAILABLE or monotonic() > until:
                return NotShown(AnnotationState.FAILED, row.cause or "evidence_unavailable")
            wish = False
            await asyncio.sleep(LOOK_EVERY_S)

    async def _document(self, tx: Tx, *, run_id: str, wish: bool) -> EvidenceRow | None:
        """Return the document of what the run delivered, asked for if ``wish`` and nobody has; null: it delivered nothing."""
        run = await runs.get(tx, self.project_id, run_id)
        if run is None or run.deliverable_digest is None:
            return None
        found = await evidence.present(tx, self.project_id, run.deliverable_digest)
        if found is not None and (not wish or found.state is EvidenceState.READY):
            return found
        return await evidence.request(tx, self.project_id, run.deliverable_digest, queued=True)

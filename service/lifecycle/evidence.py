"""The evidence document of a sealed deliverable, once per deliverable and version, for all gradings that want it.

``EvidenceOf(ctx, project_id, run_id, digest)`` is the ``EvidenceSource`` of one grading: nothing is made before a method asks.
What cannot be made is ``unavailable`` with a cause and tried again by whoever asks next; it is never a score. One process
makes a document at a time, which a lock in the database sees to; in a process one task does.
"""

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from weakref import WeakValueDictionary

import structlog

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.errors import Conflict, NotFound, TooLarge, Unavailable
from service.domain.evidence import EvidenceDocument, EvidenceState
from service.domain.tasks import FileRef
from service.evidence.extraction.document import EvidenceUnavailable, make_document
from service.graders.contract import GraderBusy, GraderFault
from service.lifecycle.integrity import ReportContext, entries_of
from service.store import evidence, runs
from service.store.blobs import BlobStore
from service.store.database import Tx, retrying
from service.store.evidence import Made
from service.store.rows_grading import EvidenceRow

MAX_STARTS = 5
"""Starts without an end after which a deliverable is taken to end whoever looks at it."""
OTHERS_S = 30.0
"""How long another process's making is waited for, before the grading is put off."""
MOST_BYTES = 64 << 20
"""Of a stored document."""
_FOR_GOOD = frozenset({"deliverable_missing", "extractor_crashed", "extractor_error"})
"""Causes that a repetition does not cure."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class EvidenceOf:
    """Implements ``EvidenceSource`` for one run's deliverable, or for ``entries`` that are none."""

    def __init__(
        self,
        ctx: ReportContext,
        project_id: str,
        run_id: str,
        digest: str,
        entries: Sequence[ArtifactEntry] | None = None,
    ) -> None:
        self._ctx = ctx
        self._entries = entries
        self._project_id = project_id
        self._run_id = run_id
        self._digest = digest
        self._document: EvidenceDocument | None = None
        self._reading = asyncio.Lock()

    async def document(self) -> EvidenceDocument:
        """Find or make it; read once per object.

        Raises GraderBusy ``evidence_unavailable`` (worth repeating later), GraderFault ``evidence_unavailable`` (the
        extractor itself fails on it), GraderFault ``evidence_missing`` (what was delivered is lost), Unavailable
        (database away for long).
        """
        async with self._reading:
            if self._document is None:
                self._document = await self._found()
            return self._document

    async def image(self, sha256: str) -> bytes:
        """Raises as :meth:`document`, and GraderFault ``evidence_missing`` for what is no picture of it, or lost."""
        document = await self.document()
        size = next((i.size_bytes for f in document.files for i in f.images if i.sha256 == sha256), None)
        if size is None:
            raise GraderFault("evidence_missing", f"the document has no picture {sha256}")
        try:
            return await asyncio.to_thread(self._ctx.blobs.read_bytes, sha256, size)
        except (NotFound, TooLarge) as error:
            raise GraderFault("evidence_missing", f"the content store has no picture {sha256}") from error

    async def _found(self) -> EvidenceDocument:
        for _ in range(2):
            row = await self._ready()
            document = await asyncio.to_thread(read_document, self._ctx.blobs, row)
            if document is not None:
                return document
            log.warning("evidence_lost", document=row.id)

            async def forget(tx: Tx, row: EvidenceRow = row) -> None:
                await evidence.forget(tx, row.id)

            await retrying(self._ctx.db, forget, self._ctx.database_patience_s)
        raise GraderFault("evidence_missing", "the content store loses documents")

    async def _ready(self) -> EvidenceRow:
        async def find(tx: Tx) -> EvidenceRow:
            found = await evidence.present(tx, self._project_id, self._digest)
            if found is not None and found.state is EvidenceState.READY:
                return found
            return await evidence.request(tx, self._project_id, self._digest, queued=False)

        row: EvidenceRow | None = await retrying(self._ctx.db, find, self._ctx.database_patience_s)
        if row.state is not EvidenceState.READY:
            row = await made(self._ctx, row, self._run_id, self._entries)
        if row is None:
            raise GraderFault("evidence_missing", "the deliverable is gone")
        if row.state is EvidenceState.UNAVAILABLE and row.cause in _FOR_GOOD:
            missing = row.cause == "deliverable_missing"
            raise GraderFault("evidence_missing" if missing else "evidence_unavailable", row.cause)
        if row.state is not EvidenceState.READY:
            raise GraderBusy("evidence_unavailable", row.cause or "another process is making it")
        return row


async def make_queued(ctx: ReportContext, document_id: str) -> None:
    """Make a document that was asked for. Raises Unavailable (database away for long)."""

    async def find(tx: Tx) -> tuple[EvidenceRow | None, str | None]:
        row = await evidence.by_id(tx, document_id)
        run_id = await evidence.run_with(tx, row) if row is not None else None
        return row, run_id

    row, run_id = await retrying(ctx.db, find, ctx.database_patience_s)
    if row is not None and run_id is not None:
        row = await made(ctx, row, run_id)
    if row is not None and row.state is EvidenceState.PENDING and run_id is not None:
        return  # another process is making it, and the next scan looks again

    async def unqueue(tx: Tx) -> None:
        await evidence.unqueue(tx, document_id)

    await retrying(ctx.db, unqueue, ctx.database_patience_s)


def reference_evidence(ctx: ReportContext, project_id: str, run_id: str, files: Sequence[FileRef]) -> EvidenceOf:
    """Return the evidence of hidden files, made once per project and set of files as a deliverable's is."""
    entries = [ArtifactEntry(f.path, EntryKind.FILE, f.size_bytes, f.sha256) for f in files]
    return EvidenceOf(ctx, project_id, run_id, Deliverable(tuple(entries)).digest(), entries)


async def made(
    ctx: ReportContext, row: EvidenceRow, run_id: str, entries: Sequence[ArtifactEntry] | None = None
) -> EvidenceRow | None:
    """Return the document's row after at most one more try, pending if another process is at it; null if it was deleted.

    It is made of ``entries``, else of the run's deliverable. Raises Unavailable (database away for long).
    """
    async with _making.setdefault(row.id, asyncio.Lock()):
        try:
            async with ctx.db.session_lock(f"workstead.evidence.{row.id}", wait_s=OTHERS_S):
                return await _tried(ctx, row, run_id, entries)
        except Conflict:
            return row


async def _tried(
    ctx: ReportContext, row: EvidenceRow, run_id: str, given: Sequence[ArtifactEntry] | None
) -> EvidenceRow | None:
    async def start(tx: Tx) -> tuple[EvidenceRow | None, list[ArtifactEntry]]:
        now = await evidence.by_id(tx, row.id)
        if now is None or now.state is not EvidenceState.PENDING:
            return now, []
        if given is not None:
            return await evidence.start(tx, row.id), [*given]
        if (await runs.load(tx, run_id)).deliverable_digest != row.digest:
            return None, []
        return await evidence.start(tx, row.id), await entries_of(tx, run_id)

    started, entries = await retrying(ctx.db, start, ctx.database_patience_s)
    if started is None or started.state is not EvidenceState.PENDING:
        return started
    found = "extractor_crashed" if started.tries > MAX_STARTS else await _try(ctx, entries)

    async def keep(tx: Tx) -> EvidenceRow | None:
        if isinstance(found, str):
            await evidence.fail(tx, row.id, found)
        else:
            await evidence.finish(tx, row.id, found)
        return await evidence.by_id(tx, row.id)

    return await retrying(ctx.db, keep, ctx.database_patience_s)


async def _try(ctx: ReportContext, entries: list[ArtifactEntry]) -> Made | str:
    """Return what was made and stored, or why there is none."""
    began = time.monotonic()
    try:
        document = await make_document(entries, ctx.blobs.path, ctx.rooms, ctx.blobs.store_many)
        made = await asyncio.to_thread(_stored, ctx.blobs, document, began)
        log.info("evidence", files=made.files, failed=made.failed_files, took_s=made.took_s)
        return made
    except EvidenceUnavailable as error:
        log.warning("evidence_unavailable", cause=error.type, detail=error.detail)
        return error.type
    except Unavailable as error:
        return error.type
    except Exception:  # a bug of ours in making it must end as a cause, not as a grading that hangs
        log.exception("evidence_bug")
        return "extractor_error"


def _stored(blobs: BlobStore, document: EvidenceDocument, began: float) -> Made:
    content = document.model_dump_json(exclude_defaults=True).encode()
    blobs.store_bytes(content)
    return Made(
        sha256=sha256(content).hexdigest(),
        size_bytes=len(content),
        files=len(document.files),
        failed_files=sum(f.state == "failed" for f in document.files),
        omitted_chars=document.omitted.chars,
        took_s=round(time.monotonic() - began, 3),
        pictures={i.sha256: i.size_bytes for f in document.files for i in f.images},
    )


def read_document(blobs: BlobStore, row: EvidenceRow) -> EvidenceDocument | None:
    """Return the document of a ready row; null if the content store has it no more. Blocks."""
    try:
        return EvidenceDocument.model_validate_json(blobs.read_bytes(row.sha256 or "", MOST_BYTES))
    except (NotFound, TooLarge):
        return None

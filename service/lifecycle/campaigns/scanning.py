"""Warns the lead of deliverables that say whose work they are: in file names, texts or metadata."""

import asyncio
from collections.abc import Iterable

from service.domain.artifacts import EntryKind
from service.domain.blinding import MOST_FOUND, Names
from service.domain.evidence import EvidenceDocument, EvidenceState
from service.lifecycle.campaigns.showing import read_document
from service.store import artifacts, evidence, runs
from service.store.blobs import BlobStore
from service.store.campaigns import campaigns, items, names
from service.store.database import Tx
from service.store.paging import MAX_LIMIT
from service.store.rows import Json
from service.store.rows_campaigns import CampaignRow, ItemRow

AT_ONCE = 20
"""Items of one call: each may be a document of some megabytes."""


async def ask_for_documents(tx: Tx, campaign: CampaignRow) -> None:
    """Have the evidence documents of all deliverables made that are not there yet: raters see their pages as pictures."""
    found = await items.deliveries(tx, campaign.id)
    for digest in sorted({d.digest for d in found.values() if d.files}):
        await evidence.request(tx, campaign.project_id, digest, queued=True)


async def scan(tx: Tx, blobs: BlobStore, campaign: CampaignRow, limit: int = AT_ONCE) -> int:
    """Look at items that nobody looked at; return how many were looked at. Those whose documents are on their way wait."""
    known = await names.of_project(tx, campaign.project_id)
    looked = 0
    for item in await items.unscanned(tx, campaign.id, limit):
        looked += await scan_item(tx, blobs, item, known)
    if looked:
        await campaigns.touch(tx, campaign.id)
    return looked


async def scan_item(tx: Tx, blobs: BlobStore, item: ItemRow, known: Names) -> bool:
    """Note what identifies the item's deliverables. False: a document is on its way, and nothing was noted."""
    found: list[Json] = []
    for run_id in filter(None, (item.run_id, item.other_run_id)):
        run = await runs.load(tx, run_id)
        state, document = await read_document(tx, blobs, run.project_id, run.deliverable_digest or "")
        if state == EvidenceState.PENDING:
            return False
        for path in await _paths(tx, run_id):
            found += _told(run_id, path, "name", known.found_in(path))
        if document is not None:
            found += await asyncio.to_thread(_in_document, run_id, document, known)
    await items.note_identifying(tx, item.id, found[:MOST_FOUND])
    return True


async def _paths(tx: Tx, run_id: str) -> list[str]:
    part = await artifacts.list(tx, run_id, 0, MAX_LIMIT)
    return [r.path for r in part.items if r.kind == EntryKind.FILE]


def _in_document(run_id: str, document: EvidenceDocument, known: Names) -> list[Json]:
    found: list[Json] = []
    for file in document.files:
        for part in file.parts:
            where = "metadata" if part.kind in ("metadata", "hidden") else "text"
            found += _told(run_id, file.path, where, known.found_in(part.text))
        facts = " ".join(str(v) for v in file.facts.values())
        found += _told(run_id, file.path, "metadata", known.found_in(facts))
        if len(found) >= MOST_FOUND:
            break
    return found


def _told(run_id: str, path: str, where: str, found: Iterable[str]) -> list[Json]:
    return [{"run_id": run_id, "path": path, "where": where, "name": name} for name in found]

"""What a rater sees of an assignment: brief, inputs, note, reference and deliverables, without whose work it is.

Files and pictures are told by number, in an order that only their contents make. Names of agents, models, providers and
scaffolds are taken out of file names; what is *in* files stays as it is (the lead is warned, see scanning.py).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from mimetypes import guess_type

from service.domain.artifacts import EntryKind
from service.domain.blinding import Names, distinct
from service.domain.campaigns import Form
from service.domain.cleaning import clean_text
from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage
from service.domain.integrity import FileReport
from service.domain.tasks import FileRef, TaskManifest
from service.lifecycle.campaigns.making import reference_of
from service.store import artifacts, evidence, integrity, runs, tasks
from service.store.blobs import BlobStore
from service.store.campaigns import items, names
from service.store.database import Tx
from service.store.paging import MAX_LIMIT
from service.store.previews import Tree
from service.store.rows import ArtifactRow, TaskRow
from service.store.rows_campaigns import AssignmentRow, CampaignRow, ItemRow, RaterRow

NOTE_PATH = "evaluator_note.md"
"""Hidden file that raters see and agents never do."""
NOTE_BYTES = 64 << 10
MOST_FILES = 2000
"""Of one deliverable, that raters see."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    n: int
    """From 0, over all sides."""
    name: str
    """Path below its side, without identifying names."""
    path: str
    """As it is; never for raters."""
    sha256: str
    size_bytes: int
    mime: str | None
    report: FileReport | None = None
    evidence: EvidenceFile | None = None


@dataclass(frozen=True, slots=True)
class ShownImage:
    n: int
    """From 0, over all files."""
    file: int
    image: EvidenceImage


@dataclass(frozen=True, slots=True)
class Side:
    """One column of the page."""

    alias: str
    """inputs | reference | deliverable | a | b"""
    files: list[ShownFile]
    tree: Tree | None = None
    """What a preview of it opens; never for raters."""
    evidence: str | None = None
    """State of the document of the deliverable; null where there is none to be."""
    not_listed: int = 0
    """Files beyond the first ones."""


@dataclass(frozen=True, slots=True)
class Shown:
    campaign: CampaignRow
    rater: RaterRow
    assignment: AssignmentRow
    item: ItemRow
    brief: str
    note: str | None
    sides: list[Side]
    images: list[ShownImage]
    names: Names
    """What must not be told; empty where the campaign is not blind."""

    @property
    def files(self) -> list[ShownFile]:
        return [file for side in self.sides for file in side.files]


async def show(
    tx: Tx,
    blobs: BlobStore,
    campaign: CampaignRow,
    rater: RaterRow,
    assignment: AssignmentRow,
    *,
    documents: bool = True,
) -> Shown:
    """Return everything that the page of the assignment has; without ``documents`` no evidence and no pictures."""
    item = await items.get(tx, assignment.item_id)
    task = await tasks.get(tx, campaign.project_id, item.task_id)
    assert task is not None
    known = await names.of_project(tx, campaign.project_id) if campaign.spec.blind else Names()
    sides = await _sides(tx, blobs if documents else None, campaign, task, item, assignment)
    shown = _numbered([_scrubbed(side, known) for side in sides])
    note = await asyncio.to_thread(_note, blobs, task.manifest)
    return Shown(campaign, rater, assignment, item, task.manifest.instruction, note, shown, _images(shown), known)


async def _sides(
    tx: Tx, blobs: BlobStore | None, campaign: CampaignRow, task: TaskRow, item: ItemRow, assignment: AssignmentRow
) -> list[Side]:
    inputs = Side("inputs", _files(task.manifest.visible))
    reference = _reference_side("reference", campaign, task)
    first = await _deliverable(tx, blobs, "deliverable", item.run_id)
    if campaign.form is Form.HUMAN_PANEL:
        return [inputs, reference, first]
    if item.other_run_id is None:  # the reference is one of the two
        both = [first, reference]
    else:
        both = [first, await _deliverable(tx, blobs, "b", item.other_run_id)]
    if assignment.swapped:
        both.reverse()
    named = [replace(side, alias=alias) for alias, side in zip(("a", "b"), both, strict=True)]
    return [inputs, *([reference] if item.other_run_id else []), *named]


def _reference_side(alias: str, campaign: CampaignRow, task: TaskRow) -> Side:
    prefix = campaign.spec.reference_prefix
    paths = set(reference_of(task.manifest, campaign.spec))
    files = _files([f for f in task.manifest.hidden if f.path in paths], prefix)
    return Side(alias, files, Tree(campaign.project_id, "reference", task.id, prefix))


def _files(refs: Sequence[FileRef], prefix: str = "") -> list[ShownFile]:
    return [
        ShownFile(0, f.path.removeprefix(prefix), f.path, f.sha256, f.size_bytes, guess_type(f.path)[0])
        for f in refs[:MOST_FILES]
    ]


async def _deliverable(tx: Tx, blobs: BlobStore | None, alias: str, run_id: str) -> Side:
    run = await runs.load(tx, run_id)
    digest = run.deliverable_digest or ""
    report = await integrity.find(tx, run.project_id, digest)
    checked = report.report.by_path() if report is not None and report.report is not None else {}
    state, document = (None, None) if blobs is None else await read_document(tx, blobs, run.project_id, digest)
    said = {f.path: f for f in document.files} if document else {}
    rows = await _sealed(tx, run_id)
    files = [
        ShownFile(0, r.path, r.path, r.sha256 or "", r.size_bytes, r.mime, checked.get(r.path), said.get(r.path))
        for r in rows[:MOST_FILES]
    ]
    tree = Tree(run.project_id, "deliverable", run_id)
    return Side(alias, files, tree, state, max(0, run.deliverable_files - len(files)))


async def read_document(
    tx: Tx, blobs: BlobStore, project_id: str, digest: str
) -> tuple[str | None, EvidenceDocument | None]:
    """Return the state of the deliverable's evidence document, and the document where it is ready."""
    row = await evidence.find(tx, project_id, digest)
    if row is None or row.sha256 is None:
        return (None if row is None else str(row.state)), None
    return str(row.state), await asyncio.to_thread(_read, blobs, row.sha256)


@lru_cache(maxsize=8)  # a page of pictures asks for one document many times
def _read(blobs: BlobStore, sha256: str) -> EvidenceDocument:
    with blobs.open(sha256) as file:
        return EvidenceDocument.model_validate_json(file.read())


async def _sealed(tx: Tx, run_id: str) -> list[ArtifactRow]:
    """Return the files of the deliverable, as many as are shown and one more."""
    found: list[ArtifactRow] = []
    position: int | None = 0
    while position is not None and len(found) <= MOST_FILES:
        part = await artifacts.list(tx, run_id, position, MAX_LIMIT)
        found += [r for r in part.items if r.kind == EntryKind.FILE and r.sha256 is not None]
        position = int(part.next[0]) if part.next else None
    return found


def _scrubbed(side: Side, known: Names) -> Side:
    clean = distinct([known.scrubbed(f.name) for f in side.files])
    return replace(side, files=[replace(f, name=name) for f, name in zip(side.files, clean, strict=True)])


def _numbered(sides: Sequence[Side]) -> list[Side]:
    n = 0
    found: list[Side] = []
    for side in sides:
        found.append(replace(side, files=[replace(f, n=n + i) for i, f in enumerate(side.files)]))
        n += len(side.files)
    return found


def _images(sides: Sequence[Side]) -> list[ShownImage]:
    pictures = [(f.n, image) for side in sides for f in side.files if f.evidence for image in f.evidence.images]
    return [ShownImage(n, file, image) for n, (file, image) in enumerate(pictures)]


def _note(blobs: BlobStore, manifest: TaskManifest) -> str | None:
    """Return the task's note for raters, as far as it is short enough."""
    found = next((f for f in manifest.hidden if f.path == NOTE_PATH), None)
    if found is None:
        return None
    with blobs.open(found.sha256) as file:
        return clean_text(file.read(NOTE_BYTES))[0]

"""Looks through everything that a finished run met for marks of its own answer key (NEEDS A3)."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from service.domain.contamination import MOST_HITS, VERSION, Hit, Mark, MarkKind, hits_in, marks_of
from service.domain.errors import NotFound
from service.domain.events import EventType
from service.domain.evidence import EvidenceState
from service.domain.run_states import Flag
from service.domain.tasks import TaskManifest
from service.lifecycle.contamination.texts import (
    Bodies,
    Budget,
    delivered_texts,
    event_texts,
    file_text,
    hidden_text,
    seen_texts,
)
from service.lifecycle.evidence import read_document
from service.store import artifacts, contamination, events, evidence, model_requests, runs, tasks
from service.store.blobs import BlobStore
from service.store.database import Database, Tx
from service.store.events import Event
from service.store.rows import ArtifactRow, RunRow, TaskRow
from service.store.rows_grading import EvidenceRow
from service.store.rows_requests import ModelRequestRow

PAGE = 500
MOST_EVENTS = 20_000
MOST_REQUESTS = 5_000
MOST_KEPT_MARKS = 100_000
"""Of all tasks together: some 30 MB."""
_SAYING = (
    EventType.TOOL_RESULT, EventType.TOOL_CALL, EventType.OUTPUT, EventType.AGENT_MESSAGE, EventType.AGENT_THINKING,
    EventType.AGENT_FINAL,
)  # fmt: skip
_CHEATS = frozenset({"oracle"})
"""Kinds that deliver the reference by design."""


@dataclass(frozen=True, slots=True)
class Scanned:
    marks: int
    hits: list[Hit]
    scanned_bytes: int
    cut: bool


@dataclass(frozen=True, slots=True)
class _Met:
    requests: list[ModelRequestRow]
    events: list[Event]
    files: list[ArtifactRow]
    document: EvidenceRow | None


class KeptMarks:
    """The marks of tasks whose runs were looked through last: an evaluation's runs come by the hundred for each task.

    A task's digest names all that its marks are of. For one scan at a time.
    """

    def __init__(self, blobs: BlobStore, most: int = MOST_KEPT_MARKS) -> None:
        self._blobs, self._most = blobs, most
        self._kept: OrderedDict[tuple[str, tuple[str, ...]], list[Mark]] = OrderedDict()

    def of(self, task: TaskRow, canaries: Iterable[str]) -> list[Mark]:
        """Return what :func:`task_marks` does. Blocks where they are not known."""
        key = (task.digest, tuple(sorted(canaries)))
        marks = self._kept.pop(key, None)
        if marks is None:
            marks = task_marks(self._blobs, task.manifest, key[1])
        self._kept[key] = marks
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > self._most:
            self._kept.popitem(last=False)
        return marks


async def scan(db: Database, blobs: BlobStore, known: KeptMarks, run_id: str) -> None:
    """Scan a run and keep what was found; a hit becomes its flag and an event, once. Raises Unavailable."""
    async with db.reading() as tx:
        try:
            run = await runs.load(tx, run_id)
        except NotFound:
            return
        kind = await contamination.scaffold_kind(tx, run.agent_id)
        task = await tasks.get(tx, run.project_id, run.task_id)
        canaries = await contamination.canaries_of(tx, run.project_id, run.task_id)
    if task is None or kind in _CHEATS:
        return
    marks = await asyncio.to_thread(known.of, task, canaries)
    met = await _met(db, run) if marks else _Met([], [], [], None)
    found = await asyncio.to_thread(partial(look_through, blobs, marks, met))
    async with db.transaction() as tx:
        await _keep(tx, run, found)


def task_marks(blobs: BlobStore, task: TaskManifest, canaries: Iterable[str]) -> list[Mark]:
    """Return what the task's runs are looked through for. Blocks.

    What a simulated client knows is no mark: it is asked so that it tells.
    """
    budget = Budget()
    visible = {ref.path: file_text(blobs, ref.sha256, budget) for ref in task.visible}
    given = {ref.sha256 for ref in task.visible}
    facts = task.imported_facts()
    hidden = [ref for ref in task.hidden if ref.sha256 not in given and ref != facts and ref.size_bytes > 0]
    texts = ((ref.path, hidden_text(blobs, ref.sha256, budget)) for ref in hidden)
    written = ((path, text) for path, text in texts if text is not None)
    files = [Mark(MarkKind.FILE, ref.sha256, ref.path) for ref in hidden]
    return [*marks_of(canaries, written, seen_texts(task.instruction, visible)), *files]


def look_through(blobs: BlobStore, marks: list[Mark], met: _Met) -> Scanned:
    """Look through all of it, requests first. Blocks, for seconds where there is much."""
    budget = Budget()
    hits = _files_again(marks, met.files)
    for where, text in _texts(blobs, met, budget):
        hits += hits_in(marks, where, text)
        if len(hits) >= MOST_HITS:
            break
    return Scanned(len(marks), hits[:MOST_HITS], budget.used, budget.cut)


def _texts(blobs: BlobStore, met: _Met, budget: Budget) -> Iterator[tuple[str, str]]:
    document = None if met.document is None else read_document(blobs, met.document)
    yield from Bodies(blobs, budget).texts(met.requests)
    yield from event_texts(met.events, budget)
    yield from delivered_texts(blobs, met.files, document, budget)


def _files_again(marks: list[Mark], files: list[ArtifactRow]) -> list[Hit]:
    hidden = {mark.text: mark for mark in marks if mark.kind is MarkKind.FILE}
    again = ((file, hidden.get(file.sha256 or "")) for file in files)
    return [Hit(mark.kind, mark.source, f"deliverable {file.path}", mark.text) for file, mark in again if mark]


async def _met(db: Database, run: RunRow) -> _Met:
    asked: list[ModelRequestRow] = []
    while len(asked) < MOST_REQUESTS:
        async with db.reading() as tx:
            page = await model_requests.list_for_run(tx, run.id, (asked[-1].n or 0) if asked else 0, PAGE)
        asked += page
        if len(page) < PAGE:
            break
    said: list[Event] = []
    while len(said) < MOST_EVENTS:
        async with db.reading() as tx:
            found = await events.read(tx, run.id, said[-1].seq if said else 0, PAGE, _SAYING)
        said += found
        if len(found) < PAGE:
            break
    files, document = await _delivered(db, run)
    # Judges, simulated clients and checks are ours: what they were told is no agent's doing.
    return _Met([row for row in asked if row.purpose == "agent"], said, files, document)


async def _delivered(db: Database, run: RunRow) -> tuple[list[ArtifactRow], EvidenceRow | None]:
    files: list[ArtifactRow] = []
    following: tuple[str, str] | None = ("0", run.id)
    while following is not None:
        async with db.reading() as tx:
            page = await artifacts.list(tx, run.id, int(following[0]), PAGE)
        files += page.items
        following = page.next
    async with db.reading() as tx:
        digest = run.deliverable_digest
        document = None if digest is None else await evidence.find(tx, run.project_id, digest)
    return files, document if document is not None and document.state is EvidenceState.READY else None


async def _keep(tx: Tx, run: RunRow, found: Scanned) -> None:
    hits = [{"kind": h.kind, "source": h.source, "where": h.where, "excerpt": h.excerpt} for h in found.hits]
    values = {"marks": found.marks, "hits": hits, "scanned_bytes": found.scanned_bytes, "cut": found.cut}
    if not await contamination.keep(tx, run.id, VERSION, values) or not hits:
        return
    kinds = sorted({str(hit.kind) for hit in found.hits})
    places = list(dict.fromkeys(hit.where for hit in found.hits))[:20]
    payload = {"version": VERSION, "hits": len(hits), "kinds": kinds, "places": places}
    await contamination.tell(tx, run.id, EventType.CONTAMINATION, payload, VERSION)
    await runs.add_flags(tx, run.id, [Flag.CONTAMINATION_SUSPECTED])

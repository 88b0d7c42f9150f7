"""``evidence``: a deliverable of 20 mixed files in one room, against the sum of as many deliverables of one file each.

``evidence_cached``: the document that is there, from its row to the model, as a second grading gets it.
"""

import asyncio
import io
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import docx
import openpyxl

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.evidence import EvidenceDocument
from service.evidence.extraction.document import make_document
from service.lifecycle.evidence import EvidenceOf
from service.lifecycle.integrity import ReportContext
from service.sandboxes.docker.room_host import open_rooms
from service.sandboxes.docker.rooms import EngineRooms, RoomsConfig
from service.store import artifacts, migrate, runs
from service.store.blobs import BlobStore
from service.store.database import Database
from service.supervisor.postgres import EmbeddedPostgres
from tests.bench.report import Result
from tests.docker import sample_files as made
from tests.fixtures.postgres import open_directory
from tests.integration.store.seeds import add_run, seed

ROUNDS, READS = 2, 30
DIGEST = "e" * 64


def evidence() -> Result:
    whole, single = asyncio.run(_measured())
    return Result("evidence", whole, "s", single, whole / single, "<= 0.6", {"files": len(mixed())})


def evidence_cached() -> Result:
    with open_directory() as data, EmbeddedPostgres(data / "pg", durable=False) as server:
        migrate.upgrade(server.url)
        took, size = asyncio.run(_cached(data, server.url))
    detail = {"document_bytes": size, "p100_ms": max(took)}
    return Result("evidence_cached", statistics.median(took), "ms", goal="<= 20", detail=detail)


def mixed() -> dict[str, bytes]:
    """6 docx, 5 xlsx with formulas, 3 pdf, 3 png, a page, a notebook, a table."""
    files = {f"letter{n}.docx": _letter(n) for n in range(6)} | {f"book{n}.xlsx": _book(50 * (n + 1)) for n in range(5)}
    files |= {
        f"report{n}.pdf": made.printed(*(f"BT /F1 12 Tf 10 150 Td (Page {p} of {n}) Tj ET" for p in range(3)))
        for n in range(3)
    }
    files |= {f"chart{n}.png": made.picture("png", (800 + n, 600)) for n in range(3)}
    cells = [{"cell_type": "code", "source": f"x = {n}"} for n in range(20)]
    table = "".join(f"row {n},{n * 2}\n" for n in range(5000)).encode()
    page, book = b"<html><p>words</p></html>", json.dumps({"cells": cells}).encode()
    return files | {"page.html": page, "book.ipynb": book, "table.csv": table}


def _letter(n: int) -> bytes:
    letter = docx.Document()
    for line in range(40):
        letter.add_paragraph(f"Paragraph {line} of letter {n}: the quick brown fox jumps over the lazy dog.")
    buffer = io.BytesIO()
    letter.save(buffer)
    return buffer.getvalue()


def _book(rows: int) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Sums", 0)
    for row in range(1, rows):
        sheet.append([f"row {row}", row * 1.5, f"=B{row}*2"])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


async def _measured() -> tuple[float, float]:
    files = mixed()
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as name:
        folder = Path(name)
        async with open_rooms(folder / "rooms", "wsbench", RoomsConfig(1)) as rooms:
            assert rooms is not None
            await _extracted(rooms, folder, {"page.html": files["page.html"]})  # what is found out once per process
            whole = single = 0.0
            for _ in range(ROUNDS):
                began = time.perf_counter()
                await _extracted(rooms, folder, files)
                whole += time.perf_counter() - began
                began = time.perf_counter()
                for path, data in files.items():
                    await _extracted(rooms, folder, {path: data})
                single += time.perf_counter() - began
            return whole / ROUNDS, single / ROUNDS


async def _extracted(rooms: EngineRooms, folder: Path, files: Mapping[str, bytes]) -> EvidenceDocument:
    blobs = BlobStore(folder / "blobs")
    entries = [ArtifactEntry(f"output/{p}", EntryKind.FILE, len(d), blobs.store_bytes(d)[0]) for p, d in files.items()]
    document = await make_document(entries, blobs.path, rooms, blobs.store_many)
    assert all(f.state == "extracted" for f in document.files), document
    return document


async def _cached(folder: Path, url: str) -> tuple[list[float], int]:
    """Return milliseconds of each reading, and the size of the document's JSON."""
    async with AsyncExitStack() as stack:
        db, blobs = Database(url), BlobStore(folder / "blobs")
        stack.push_async_callback(db.close)
        texts = [f"line {n} of a text\n".encode() * 2000 for n in range(20)]
        entries = [
            ArtifactEntry(f"output/{n}.md", EntryKind.FILE, len(d), blobs.store_bytes(d)[0])
            for n, d in enumerate(texts)
        ]
        async with db.transaction() as tx:
            seeds = await seed(tx, "bench")
            run = await add_run(tx, seeds)
            await artifacts.insert_all(tx, run.id, Deliverable(tuple(entries)))
            await runs.update(tx, run.id, deliverable_digest=DIGEST)
        context = ReportContext(db, blobs, None)
        took: list[float] = []
        document = EvidenceDocument()
        for _ in range(READS + 1):
            began = time.perf_counter()
            document = await EvidenceOf(context, seeds.project.id, run.id, DIGEST).document()
            took.append(1000 * (time.perf_counter() - began))
        return took[1:], len(document.model_dump_json())

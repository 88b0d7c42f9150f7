"""``matrix``: an evaluation of 10 000 runs drafted and started."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from service.domain.agents import ScaffoldManifest
from service.domain.benchmarks import BenchmarkHead, BenchmarkItem, Source
from service.domain.evaluations import EvaluationSpec, Matrix
from service.domain.tasks import TaskManifest
from service.lifecycle.evaluations import drafting, starting
from service.store import benchmarks, migrate, projects, scaffolds, tasks
from service.store.blobs import BlobStore
from service.store.database import Database, Tx
from service.store.rows_evaluations import EvaluationRow
from service.supervisor.postgres import EmbeddedPostgres
from tests.bench.report import Result
from tests.fixtures.postgres import open_directory

GOAL = "start ≤ 3 s"
AGENTS, TASKS, SAMPLES = 10, 500, 2


def matrix() -> Result:
    """Seconds of the transaction that makes the runs; ``value`` is the start."""
    with open_directory() as directory, EmbeddedPostgres(directory, durable=True) as server:
        url = server.url_for("postgres")
        migrate.upgrade(url)
        detail = asyncio.run(_measure(url))
    return Result("matrix", detail["start_s"], "s", goal=GOAL, detail=detail)


async def _measure(url: str) -> dict[str, Any]:
    db = Database(url)
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as folder:
        blobs = BlobStore(Path(folder))
        async with db.transaction() as tx:
            project = await projects.get_default(tx)
            await _benchmark(tx, project.id)
            await scaffolds.register(tx, project.id, ScaffoldManifest(name="cmd", version="1", argv=["true"]))
        drafted, row = await _timed_draft(db, blobs, project.id)
        began = time.monotonic()
        async with db.transaction() as tx:
            row = await starting.start(tx, row.id, "bench", preflight_skipped=True)
        took = time.monotonic() - began
    await db.close()
    assert row.total == AGENTS * TASKS * SAMPLES
    return {"runs": row.total, "draft_s": drafted, "start_s": took}


async def _timed_draft(db: Database, blobs: BlobStore, project_id: str) -> tuple[float, EvaluationRow]:
    axes = {"n": list(range(AGENTS))}
    spec = EvaluationSpec(
        name="bench", benchmark="bench", matrix=Matrix(scaffold=["cmd@1"], settings=axes), samples=SAMPLES
    )  # fmt: skip
    began = time.monotonic()
    async with db.transaction() as tx:
        row = await drafting.draw_up(tx, blobs, project_id, spec, "bench")
    return time.monotonic() - began, row


async def _benchmark(tx: Tx, project_id: str) -> None:
    pairs: list[tuple[BenchmarkItem, str | None]] = []
    for n in range(TASKS):
        manifest = TaskManifest(name=f"t/{n}", instruction=f"do {n} " * 100, facets={"area": str(n % 7)})
        row, _ = await tasks.create(tx, project_id, manifest)
        pairs.append((BenchmarkItem(key=str(n), task=manifest), row.id))
    head = BenchmarkHead(name="bench", version="1", source=Source(importer="made_up", importer_version="1"))
    await benchmarks.insert_whole(tx, project_id, head, "0" * 64, {}, pairs)

"""``import``: a published set of each kind from its files here to a benchmark there, and the same once more."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.report import Result
from tests.bench.sources import FREELANCE_ITEMS, JOBBENCH_BYTES, JOBBENCH_FILES, JOBBENCH_TASKS, freelance, jobbench
from tests.journeys.stack import Stack, stack
from workstead.importers.contract import ImportOptions
from workstead.importers.registry import importer_for
from workstead.sync import Client

GOAL = "freelance ≤ 20 s, jobbench ≤ 60 s, each again ≤ 5 s"


def import_(
    items: int = FREELANCE_ITEMS,
    tasks: int = JOBBENCH_TASKS,
    files: int = JOBBENCH_FILES,
    total_bytes: int = JOBBENCH_BYTES,
) -> Result:
    """Seconds from the first byte read to the benchmark's answer; ``value`` is Freelance, the first time."""
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as folder, stack() as running:
        sources: dict[str, Callable[[], Path]] = {
            "freelance": lambda: freelance(Path(folder) / "freelance.json", items),
            "jobbench": lambda: jobbench(Path(folder) / "jobbench", tasks, files, total_bytes),
        }
        detail: dict[str, Any] = {"items": items, "tasks": tasks, "files": files, "bytes": total_bytes}
        for kind, make in sources.items():
            source = make()
            detail[f"{kind}_s"] = _import(running, kind, source)
            detail[f"{kind}_again_s"] = _import(running, kind, source)
    return Result("import", detail["freelance_s"], "s", goal=GOAL, detail=detail)


def _import(running: Stack, kind: str, source: Path) -> float:
    importer = importer_for(kind)
    assert importer is not None
    started = time.monotonic()
    with importer.read(source, ImportOptions()) as imported, Client(running.url, running.token) as client:
        benchmark = client.benchmarks.create(imported.manifest, imported.files)
    took = time.monotonic() - started
    assert benchmark.counts["items"] == len(imported.items)
    return took

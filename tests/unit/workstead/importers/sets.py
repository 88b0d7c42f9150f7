"""The synthetic sets as tests use them, and how a manifest is checked."""

import json
from pathlib import Path
from typing import Any

from service.domain.benchmarks import BenchmarkManifest
from workstead.importers.contract import Imported, ImportOptions
from workstead.importers.registry import importer_for

DEMO = Path(__file__).parents[4] / "demo/benchmarks"
GOLDEN = Path(__file__).parents[3] / "data/importers"


def read(kind: str, source: Path, **settings: str | Path) -> Imported:
    importer = importer_for(kind)
    assert importer is not None
    return importer.read(source, ImportOptions(settings={k: str(v) for k, v in settings.items()}))


def checked(imported: Imported) -> BenchmarkManifest:
    """Return the manifest as the service reads it from the wire; every file that it names is there."""
    manifest = BenchmarkManifest.model_validate_json(
        json.dumps(imported.manifest, allow_nan=False, ensure_ascii=False).encode()
    )
    tasks = [item.task for item in manifest.items if item.task is not None]
    named = {ref.sha256 for task in tasks for ref in (*task.visible, *task.hidden)}
    assert named == set(imported.files)
    return manifest


def problems(imported: Imported, key: str) -> list[str]:
    """Return the types of an item's problems."""
    item = next(item for item in imported.items if item["key"] == key)
    return [problem["type"] for problem in item["problems"]]


def without_content(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest without what depends on the bytes of office files, which a newer library may write differently."""
    kept = json.loads(json.dumps(manifest))
    kept.pop("version")
    kept["source"].pop("files_digest")
    for task in (item["task"] for item in kept["items"] if item["task"] is not None):
        for file in (*task["visible"], *task["hidden"]):
            del file["sha256"], file["size_bytes"]
    return kept

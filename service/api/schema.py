"""The published schemas: ``api_schema/openapi.json`` and one JSON schema per document. Generated, tested for drift."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from service.api.app import describe
from service.api.event_view import RunEvent
from service.api.resources.evaluation_tables import table_view
from service.api.resources.gradings import Grading
from service.api.run_view import Run
from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.benchmarks import BenchmarkManifest
from service.domain.evaluations import EvaluationSpec
from service.domain.integrity import IntegrityReport
from service.domain.probes import ProbeReport
from service.domain.task_bundle import FOLDERS
from service.domain.tasks import TaskManifest
from service.reporting.dictionary import TABLES


def _without_file_lists(found: dict[str, Any]) -> None:
    for name in FOLDERS:
        del found["properties"][name]
    found["required"].remove("instruction")


class TaskFile(TaskManifest):
    """``task.toml`` of a task directory: a task's manifest without its files, which are found beside it.

    ``instruction`` is left out where there is an ``instruction.md``.
    """

    model_config = ConfigDict(json_schema_extra=_without_file_lists, title="task.toml")


Mode = Literal["validation", "serialization"]
DOCUMENTS: dict[str, tuple[type[BaseModel], Mode]] = {
    "agent": (AgentSpec, "validation"),
    "benchmark_manifest": (BenchmarkManifest, "validation"),
    "evaluation": (EvaluationSpec, "validation"),
    "integrity_report": (IntegrityReport, "serialization"),
    "judge_probe": (ProbeReport, "serialization"),
    "event": (RunEvent, "serialization"),
    "run": (Run, "serialization"),
    "scaffold_manifest": (ScaffoldManifest, "validation"),
    "task_bundle": (TaskManifest, "validation"),
    "task_toml": (TaskFile, "validation"),
    "verdict": (Grading, "serialization"),
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, str]:
    """Return ``{file name: text}`` of all published schemas."""
    found = {"openapi.json": _text(describe().openapi())}
    for name, (model, mode) in DOCUMENTS.items():
        found[f"{name}.schema.json"] = _text({"$schema": DIALECT, **model.model_json_schema(mode=mode)})
    found["tables.json"] = _text({"tables": [table_view(table).model_dump(mode="json") for table in TABLES.values()]})
    return found


def dump(directory: Path) -> list[Path]:
    """Write the schemas into ``directory``; return the files that changed."""
    directory.mkdir(parents=True, exist_ok=True)
    changed: list[Path] = []
    for name, text in documents().items():
        path = directory / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            changed.append(path)
    return changed


def check(directory: Path) -> list[str]:
    """Return in words how the files in ``directory`` differ from the code; empty when they do not."""
    problems: list[str] = []
    for name, text in documents().items():
        path = directory / name
        if not path.exists():
            problems.append(f"{name} is missing")
        elif path.read_text() != text:
            problems.append(f"{name} is not what the code says (run `make schema`)")
    return problems


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

"""Small tasks, agents and contexts."""

from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.tasks import FileRef, TaskManifest
from service.scaffolds.contract import PlanContext

CONTEXT = PlanContext(
    sample=2, seconds=90.5, deadline_unix=1_800_000_000, workspace="/workspace", home="/workspace/.home",
    output_dir="/workspace/output", instruction_file="/workspace/.home/instruction.md",
)  # fmt: skip
AGENT = AgentSpec(scaffold="s@1")


def ref(path: str, digit: str = "a") -> FileRef:
    return FileRef(path=path, sha256=digit * 64, size_bytes=1)


def task(**fields: Any) -> TaskManifest:
    return TaskManifest.model_validate({"name": "t", "instruction": "Do {deadline_unix} it", **fields})


def manifest(**fields: Any) -> ScaffoldManifest:
    return ScaffoldManifest.model_validate({"name": "s", "version": "1", **fields})

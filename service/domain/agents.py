"""Scaffolds as data and agents, the rows of every table: immutable, known by digest."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.domain.limits import Limits
from service.domain.paths import RelativePath
from service.domain.tasks import FileRef, Name, Strict, canonical_digest

Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+-]{0,63}$")]


class OutcomeRule(Strict):
    """When the program's exit counts as ``completed``; anything else is ``scaffold_error``."""

    exit_codes: list[int] = Field(default_factory=lambda: [0], min_length=1)
    require_files: list[RelativePath] = Field(default_factory=list[str])
    """Files (below /workspace) that must be regular files of the sealed deliverable."""


class ScaffoldManifest(Strict):
    """A scaffold registered over the API: ``name@version``, immutable by digest (NEEDS C3, first part)."""

    name: Name
    version: Version
    kind: Literal["command", "oracle", "nop"] = "command"
    """``command`` runs ``argv``; ``oracle`` delivers the task's reference solution; ``nop`` delivers nothing."""
    argv: list[str] = Field(default_factory=list[str], max_length=256)
    """Templates: ``{instruction} {instruction_file} {workspace} {output_dir} {deadline_unix} {seconds_left} {sample}``."""
    env: dict[str, str] = Field(default_factory=dict[str, str], max_length=128)
    """Same templates in the values."""
    prompt: Literal["argument", "stdin", "file"] = "file"
    """How the instruction arrives: in ``argv``, on standard input (then closed), or only in the instruction file."""
    files: list[FileRef] = Field(default_factory=list[FileRef], max_length=1000)
    """Files written below /workspace/.home/kit before the command starts (small programs; trees come as a kit image)."""
    kit: str | None = None
    """Image whose /opt/kit is mounted read-only at /opt/kit."""
    parser: Literal["text", "jsonl"] = "text"
    """``text``: every output chunk is an event. ``jsonl``: complete lines that are JSON objects become events too."""
    outcome: OutcomeRule = Field(default_factory=OutcomeRule)
    minimum: Limits | None = None
    """Least resources that the scaffold needs; the larger of this and the task's wins."""

    def digest(self) -> str:
        return canonical_digest(self.model_dump(mode="json"))


class AgentSpec(Strict):
    """scaffold@version + model + settings."""

    scaffold: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")]
    model: Name | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=64)
    label: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """Short unique label; made from the parts when absent. Not part of the digest."""

    def digest(self, scaffold_digest: str) -> str:
        body = self.model_dump(mode="json", exclude={"label"})
        return canonical_digest({**body, "scaffold_digest": scaffold_digest})

    def default_label(self) -> str:
        parts = [self.scaffold, self.model, *(f"{k}={v}" for k, v in sorted(self.settings.items()))]
        return " · ".join(p for p in parts if p)[:80]

"""What a scaffold kind gives: a plan of one command with its files, and the reading of that command's exit.

A scaffold is pure: it sees the task, the agent and the manifest, and decides what is run. It opens no file, knows no
store and no engine. Exceptions: :class:`service.domain.errors.Invalid` only, with a stable ``type``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What is known only when a run is about to start."""

    sample: int
    seconds: float
    """Wall clock of the agent phase."""
    deadline_unix: int
    """Unix seconds at which the host kills the sandbox."""
    workspace: str
    home: str
    output_dir: str
    instruction_file: str


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A stored file that the host writes below /workspace before the command starts."""

    path: str
    sha256: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Plan:
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    files: Sequence[PlannedFile] = ()
    parser: Literal["text", "jsonl"] = "text"
    reference_solution: bool = False
    """True only for the oracle: the files are the task's own solution, so its score measures the task, not an agent."""


class Scaffold(Protocol):
    def check(self, manifest: ScaffoldManifest) -> None:
        """Refuse a manifest that could not be planned. Called at registration. Raises Invalid."""
        ...

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        """Decide command, environment, standard input and files. Raises Invalid (checked at submission already)."""
        ...

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest) -> bool:
        """Tell whether this exit is what the outcome rule wants, as far as an exit alone can tell.

        ``require_files`` is checked later, against the sealed deliverable.
        """
        ...

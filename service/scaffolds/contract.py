"""What a scaffold kind gives: a plan of one command with its files, and the reading of that command's exit.

A scaffold is pure: it sees the task, the agent and the manifest, and decides what is run. It opens no file, knows no
store and no engine. Exceptions: :class:`service.domain.errors.Invalid` only, with a stable ``type``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol, runtime_checkable

from service.domain.agents import AgentSettings, AgentSpec, Driver, ScaffoldManifest, StopStep, Surface
from service.domain.models import Dialect, TokenUsage
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest

PROXY = "http://127.0.0.1:81"
"""The way out of network policies ``allowlist`` and ``web``, inside a sandbox."""
GATEWAY = "http://127.0.0.1"
"""The gateway inside every sandbox: Anthropic and Gemini below it, OpenAI below ``/v1``, services below ``/services``."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The catalogue's entry of the agent's model, as far as a scaffold needs it."""

    name: str
    upstream_id: str
    """What goes into requests, and what a program is told to use."""
    dialect: Dialect
    context_window: int | None = None
    max_output_tokens: int | None = None
    efforts: Sequence[str] = ()
    """Accepted efforts, least first."""


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
    model: ModelChoice | None = None
    side_models: Sequence[ModelChoice] = ()
    settings: AgentSettings = field(default_factory=AgentSettings)
    proxy: str | None = None
    """URL of the proxy inside the sandbox, where the network policy has one."""
    template: str | None = None
    """Text of the agent's own prompt template; null: the scaffold's shipped one."""
    surface: Surface = Surface.SHELL
    vocabulary: Mapping[str, Any] | None = None
    """Words for the screen that the scaffold's manifest brings."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A stored file that the host writes below /workspace before the command starts."""

    path: str
    sha256: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that the plan brings itself (configuration, a rendered prompt); as :class:`PlannedFile`."""

    path: str
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Plan:
    argv: Sequence[str]
    """Empty: no program is started (the driver is not a kit)."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    files: Sequence[PlannedFile] = ()
    parser: Literal["text", "jsonl"] = "text"
    written: Sequence[WrittenFile] = ()
    token_variables: Sequence[str] = ()
    """Further environment variables that get the run token: the names that the program looks for its key under."""
    stop: Sequence[StopStep] = ()
    """Signals before the container is killed at the wall clock's end."""
    hang_s: float | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a reader needs to repeat it: ``effort`` (resolved), ``template`` and ``prompt`` (sha256) …; no secrets."""
    reference_solution: bool = False
    """True only for the oracle: the files are the task's own solution, so its score measures the task, not an agent."""


@dataclass(frozen=True, slots=True)
class Translated:
    """An event that a line of the program's output means. ``type`` is one of domain.events.EventType's agent types."""

    type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What the program said of its own ending: its word, never evidence of ours."""

    status: Literal["success", "error", "limit"] | None = None
    """Null: it said nothing final."""
    text: str = ""
    reason: str = ""
    usage: TokenUsage | None = None
    """A second opinion beside the gateway's ledger."""
    cost_usd: Decimal | None = None


class LineParser(Protocol):
    """Reads one attempt's output, in order. After a takeover a new one is fed everything again: so it keeps no other
    state. It never raises on what it does not know: such a line stays raw output."""

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        """Take one complete line, without its newline."""
        ...

    def report(self) -> AgentReport:
        """Return what was said so far."""
        ...


class Scaffold(Protocol):
    driver: Driver
    """Who drives a run of this kind."""

    def check(self, manifest: ScaffoldManifest) -> None:
        """Refuse a manifest that could not be planned. Called at registration. Raises Invalid."""
        ...

    def plan(self, task: TaskManifest, agent: AgentSpec, manifest: ScaffoldManifest, context: PlanContext) -> Plan:
        """Decide command, environment, standard input and files. Raises Invalid (checked at submission already)."""
        ...

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        """Return a fresh reader of the program's output; null: ``Plan.parser`` says all."""
        ...

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        """Tell whether this ending is what the outcome rule wants, as far as exit and report can tell.

        ``require_files`` is checked later, against the sealed deliverable.
        """
        ...


@runtime_checkable
class SurfaceScaffold(Protocol):
    """A scaffold that says what its runs may drive; any other: no screen."""

    surfaces: frozenset[Surface]

"""Our own loops: agents that run in the worker and use the sandbox by tool calls (CONTRACTS 3, 9).

A loop is a deterministic function of its journal. Everything that could come out differently a second time (a model's
answer, a tool's result, the client's word) is a *step*: ``await journal.step(kind, key, act)`` returns what was recorded
under that key, or acts and records. After a kill the successor runs the loop from its beginning; recorded steps return at
once, a model request without a recorded answer is sent again, a tool call without a recorded result is awaited by its id.

A loop reads no clock and draws no random numbers outside a step. Exceptions of a loop: LauncherLost, SandboxGone (the
sandbox), GatewayAway, FenceLost, Unavailable (database); they end this process's try, not the attempt.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from service.domain.agents import Driver, ScaffoldManifest
from service.domain.desktop import ActionResult, Batch, DesktopState, Picture, SafetyCheck, Size
from service.domain.run_states import ExitReport
from service.domain.tasks import TaskManifest
from service.models.messages import Answer, Ask, Image
from service.sandboxes.contract import ExecResult
from service.scaffolds.contract import AgentReport, LineParser, PlanContext, Translated
from service.scaffolds.environment import refuse_command_fields

Act = Callable[[], Awaitable[dict[str, Any]]]
Tell = Callable[[dict[str, Any]], Sequence[Translated]]


def silent(value: dict[str, Any]) -> Sequence[Translated]:
    """Tell nothing of a step but the step itself."""
    del value
    return ()


class Journal(Protocol):
    async def step(self, kind: str, key: str, act: Act, tell: Tell = silent) -> dict[str, Any]:
        """Return the value recorded under (kind, key), else act, record it, and return it as a reader will get it.

        ``tell`` says which events the value means; they are stored with it, once. Keys are unique within a kind.
        Steps may run at the same time. Raises what ``act`` raises (nothing is recorded), FenceLost, Unavailable,
        JournalFull.
        """
        ...


class JournalFull(Exception):
    """The run may not record more steps: the loop ends as ``limit``."""


class LoopShell(Protocol):
    """The sandbox as a loop sees it."""

    async def exec(
        self,
        argv: Sequence[str],
        *,
        call_id: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        limit_bytes: int = 1 << 20,
    ) -> ExecResult:
        """Run a tool call, once per ``call_id``. Raises ToolFailed, LauncherLost."""
        ...

    async def read_file(self, path: str, *, limit_bytes: int = 16 << 20) -> bytes:
        """Return a regular file below /workspace. Raises ToolFailed, LauncherLost."""
        ...

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write below /workspace; a repeat writes the same again. Raises ToolFailed, LauncherLost."""
        ...


class LoopModel(Protocol):
    async def ask(self, ask: Ask) -> Answer:
        """Raises ModelRefused, GatewayAway."""
        ...


@dataclass(frozen=True, slots=True)
class ClientReply:
    text: str
    left: int
    """Messages that the agent may still send."""


class LoopClient(Protocol):
    """The task's simulated client. It keeps its own record: a repeated ``n`` returns the same reply."""

    @property
    def max_messages(self) -> int: ...

    async def reply(self, n: int, text: str, attachments: Mapping[str, str]) -> ClientReply:
        """Answer the agent's ``n``-th message (from 1). Raises GatewayAway."""
        ...


class LoopServices(Protocol):
    """Gateway services that the agent's settings name."""

    @property
    def names(self) -> Sequence[str]: ...

    async def call(self, service: str, path: str, query: Mapping[str, str]) -> tuple[int, str]:
        """GET; return status and text (bounded). Raises GatewayAway."""
        ...

    async def send(
        self, service: str, method: str, path: str, body: bytes, content_type: str, *, limit_bytes: int
    ) -> tuple[int, bytes]:
        """Return status and body, of which at most one byte more than ``limit_bytes`` is read. Raises GatewayAway."""
        ...

    async def post(
        self, service: str, path: str, body: bytes, headers: Mapping[str, str], *, limit_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """As ``send``, with headers in both directions; names of the answer's are in small letters."""
        ...


@dataclass(frozen=True, slots=True)
class DesktopOutcome:
    state: DesktopState | None
    """Null: the desktop did not answer; ``error`` says why."""
    results: Sequence[ActionResult] = ()
    picture: Picture | None = None
    """After the last action, if the batch asked for one."""
    images: Sequence[Picture] = ()
    """Of its ``screenshot`` and ``zoom`` actions."""
    error: str | None = None
    """Stable word for the batch as a whole: ``desktop_lost``, ``bad_answer``, ``timed_out`` …"""
    detail: str = ""
    interrupted: bool = False


class LoopDesktop(Protocol):
    """The run's screen."""

    @property
    def screen(self) -> Size:
        """As it was last seen."""
        ...

    async def perform(self, key: str, batch: Batch, *, call_id: str = "") -> DesktopOutcome:
        """Do a batch once per ``key``, whatever happens to this process, and record it with its pictures.

        ``call_id``: the model's call that it is made for, which the event names; empty: ``key`` stands there.

        A batch that a process died over is not repeated: its outcome is ``interrupted`` and has a fresh picture. What
        goes wrong inside is in the outcome. Raises LauncherLost, SandboxGone, FenceLost, Unavailable, JournalFull.
        """
        ...

    async def show(self, picture: Picture) -> Image:
        """Return a recorded picture as a model is sent it. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    acknowledged: bool
    by: str
    """``policy``, or the person's token."""


class LoopConfirmations(Protocol):
    """Whoever may confirm what a provider will not do unasked."""

    async def ask(self, key: str, checks: Sequence[SafetyCheck], intent: str) -> Decision:
        """Decide once per ``key``, by the agent's policy; under ``human`` it waits, the run being
        ``awaiting_confirmation``. Raises FenceLost, Unavailable, JournalFull."""
        ...


@dataclass(frozen=True, slots=True)
class LoopJob:
    task: TaskManifest
    context: PlanContext
    shell: LoopShell
    model: LoopModel
    journal: Journal
    client: LoopClient | None = None
    services: LoopServices | None = None
    desktop: LoopDesktop | None = None
    """Of a surface with a screen."""
    confirmations: LoopConfirmations | None = None
    """Beside ``desktop``."""


@dataclass(frozen=True, slots=True)
class LoopEnd:
    status: Literal["success", "error", "limit"]
    reason: str = ""
    """Stable word: ``done``, ``max_turns``, ``budget_exhausted``, ``refused``, ``no_files`` …"""
    text: str = ""
    """The agent's last words."""
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    artefacts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts for graders that are no part of the deliverable: name → text. They are named in the attempt's provenance."""


SAFETY_DENIED = "safety_denied"
"""Reason of a loop's end: a provider's safety check was not confirmed. The attempt's cause has the same name."""


class Loop(Protocol):
    async def run(self, job: LoopJob) -> LoopEnd:
        """Work until the end. Cancelled at the deadline or when the run is stopped."""
        ...


@runtime_checkable
class LoopScaffold(Protocol):
    """A scaffold whose driver is ``loop``."""

    @property
    def asks_client(self) -> bool:
        """Whether its loop has a way to ask the task's simulated client."""
        ...

    def loop(self) -> Loop: ...


class OurLoop:
    """What the kinds whose loop is ours share: no program is started, and the loop itself says how it ended."""

    driver = Driver.LOOP

    def check(self, manifest: ScaffoldManifest) -> None:
        refuse_command_fields(manifest)

    def line_parser(self, manifest: ScaffoldManifest) -> LineParser | None:
        del manifest
        return None

    def completed(self, exit: ExitReport, manifest: ScaffoldManifest, report: AgentReport | None) -> bool:
        del manifest
        return exit.code == 0 and report is not None and report.status == "success"

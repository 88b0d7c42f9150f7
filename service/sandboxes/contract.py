"""What a sandbox engine gives to the lifecycle, and every exception that a caller may see.

A sandbox is made for a :class:`SandboxSpec` alone (no run): the same way whether it waits warm or is used at once.
It becomes a run's when the caller has written ``sandbox.id`` into the attempt's row, before :meth:`Sandbox.start`.
It serves one run and is destroyed. Every method has a deadline of its own and may be repeated after a crash of the
caller: each is find-or-do.

Exceptions: :class:`SandboxGone`, :class:`EngineError`, :class:`SandboxRefused`, :class:`LauncherLost`,
:class:`ToolFailed`. Anything else is a bug of the engine.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from service.domain.artifacts import Deliverable
from service.domain.errors import Fault
from service.domain.limits import Limits
from service.domain.run_states import ContainerState, ExitReport
from service.domain.tasks import canonical_digest

WORKSPACE = "/workspace"
HOME = "/workspace/.home"
OUTPUT_DIR = "/workspace/output"
STREAMS = ("stdout", "stderr")


class SandboxError(Fault):
    """Root of what can go wrong between us and a sandbox."""


class SandboxGone(SandboxError):
    """The engine does not know the sandbox (any more): positive evidence, not a time-out."""


class EngineError(SandboxError):
    """The engine failed, hung past its deadline or could not be reached. Says nothing about the sandbox."""


class SandboxRefused(SandboxError):
    """A rule of ours forbids it: profile not attested, runtime not offered, image not acceptable."""


class LauncherLost(SandboxError):
    """The launcher does not answer; look at :meth:`Sandbox.inspect` for what that means."""


class ToolFailed(SandboxError):
    """A tool call could not be done inside (no such file, no such program, over a size limit)."""


Confinement = Literal["default", "desktop"]


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox is made from. ``key()`` tells which warm sandboxes can serve it."""

    environment: str
    """Image id of the environment."""
    kit: str | None = None
    """Image id of the kit; its /opt/kit is mounted read-only at /opt/kit."""
    limits: Limits = field(default_factory=Limits)
    runtime: str = "runc"
    in_memory: bool = False
    """The workspace is memory, counted against the memory limit, and begins empty. Such a sandbox is cheaper to make,
    is never collected and cannot be attached again."""
    confinement: Confinement = "default"
    """``desktop``: programs may make namespaces of users, processes and network, as a browser's own sandbox needs."""

    verifier: bool = False
    """A task's own verifier runs in it: small scratch folders /tests and /logs are there, owned by the sandbox's user."""

    def key(self) -> str:
        names = ("memory_bytes", "cpus", "pids", "disk_bytes", "inodes", "shm_bytes")
        sizes = {n: getattr(self.limits, n) for n in names}
        kind = [self.in_memory, self.confinement, self.verifier]
        return canonical_digest([self.environment, self.kit, self.runtime, sizes, *kind])


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file to be written before any agent code has run. Exactly one of ``data`` and ``file`` is set."""

    path: str
    """Relative to /workspace."""
    data: bytes | None = None
    file: Path | None = None
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Command:
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    """Given to the program, then closed."""
    cwd: str = WORKSPACE
    deadline_s: float = 3600
    """Inside deadline, counted by the launcher from the program's start; the caller adds 10 s to its own."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A piece of one output stream. ``offset`` is the position of its first byte; pieces of a stream are contiguous."""

    stream: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Exited:
    """The launcher's last word: the program ended and everything before it was delivered."""

    report: ExitReport
    waited_for_host_s: float = 0.0
    totals: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes written per stream."""
    deadline_hit: bool = False
    """The launcher killed the program at its inside deadline."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a program took, with its children that it waited for, as the launcher measured it."""

    wall_s: float
    cpu_s: float
    max_rss_bytes: int
    """Never less than the launcher's own size, some 15 MB; 0 where the sandbox's Python cannot tell."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    timed_out: bool = False
    usage: Usage | None = field(default=None, compare=False)
    left: bool = False
    """Of a call that was ``alone``: other processes were there when the program ended, and were killed."""
    remains: tuple[str, ...] | None = field(default=None, compare=False)
    """Of a call that was ``alone``: what then lay in the workspace and the scratch folders, not what lies deeper; cut
    at 1 KiB. Null: not known."""


OnOutput = Callable[[str, bytes], None]
"""Called with stream and bytes, in order."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One entry of a folder of a live sandbox: the agent's word."""

    name: str
    """Undecodable bytes are surrogates."""
    kind: str
    """file | directory | link | other"""
    size_bytes: int
    mtime: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class Listing:
    entries: tuple[ListedFile, ...]
    """By name."""
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class TerminalEnd:
    code: int | None
    signal: int | None


class Terminal(ABC):
    """An interactive program on a terminal of its own. Every method raises LauncherLost when the connection is gone."""

    @abstractmethod
    async def read(self) -> bytes:
        """Return what was written since, at least a byte; nothing once it has ended."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Type."""

    @abstractmethod
    async def resize(self, rows: int, columns: int) -> None: ...

    @abstractmethod
    async def end(self) -> TerminalEnd:
        """Wait for the program's end. Raises also ToolFailed (it could not be started)."""

    @abstractmethod
    async def close(self) -> None:
        """Kill what still runs. Idempotent."""


class Pipe(ABC):
    """A resident helper on two pipes. Every method raises LauncherLost when the connection is gone.

    Neither side holds more than a window of 256 KiB: whoever does not read stops the other's writes. What it writes to
    standard error is dropped. One reader and one writer at a time.
    """

    @abstractmethod
    async def read(self) -> bytes:
        """Return what was written since, at least a byte; nothing once it has ended."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Give it to standard input, waiting while the helper does not read. What a helper that has ended or closed
        its input does not take is dropped. A write that is cancelled may have been given in part."""

    @abstractmethod
    async def end(self) -> TerminalEnd:
        """Wait for the helper's end, all its output being read. Raises also ToolFailed (it could not be started)."""

    @abstractmethod
    async def close(self) -> None:
        """Close its input; what still runs 2 s later is killed. Does not wait for that. Idempotent."""


@dataclass(frozen=True, slots=True)
class ContainerReport:
    """The engine's word."""

    state: ContainerState
    exit_code: int | None = None
    oom_kills: int = 0
    """From the memory cgroup's counter or the engine's oom flag and event; monotonic over the sandbox's life."""
    started_at: str | None = None
    engine_restarted: bool = False
    """True if the engine or host restarted since the sandbox was made."""


@dataclass(frozen=True, slots=True)
class ResourceSample:
    memory_bytes: int
    cpu_s: float
    disk_used_bytes: int | None
    oom_kills: int


class FileSink(Protocol):
    """Where collected bytes go: the content store. Called from worker threads, from several at once."""

    def store(self, fd: int, limit: int) -> tuple[str, int]:
        """Copy at most ``limit`` bytes of the open regular file ``fd``; return (sha256, bytes).

        When that is durable is between the sink and whoever brought it. Raises ValueError if the file is longer than ``limit``.
        """
        ...


class Sandbox(ABC):
    """One sandbox, made or re-attached."""

    id: str
    spec: SandboxSpec

    @property
    @abstractmethod
    def attestation(self) -> Mapping[str, Any]:
        """What was compared with the engine's own word before start, kept with the run."""

    @abstractmethod
    async def write_files(self, files: Sequence[FileSource]) -> None:
        """Write files (parents made, owner the agent) before ``start``. Raises LauncherLost, ToolFailed (e.g. ENOSPC)."""

    @abstractmethod
    async def start(self, command: Command) -> None:
        """Start the program, once: a repeat with a program already started is a no-op. Raises LauncherLost, SandboxGone."""

    @abstractmethod
    async def signal(self, number: int) -> bool:
        """Send a signal to the program itself, not to what it started; False if none runs. Raises LauncherLost."""

    @abstractmethod
    def output(self) -> AsyncIterator[Frame | Exited]:
        """Yield frames from the last acknowledged offset on, then ``Exited`` last.

        Ends without ``Exited`` (raising LauncherLost) when the container stopped or the launcher is gone for good;
        short losses of the connection are ridden out inside. Unacknowledged bytes are bounded by the launcher's ring
        (4 MiB): whoever does not acknowledge stops the program's writes.
        """

    @abstractmethod
    async def waited_for_host_s(self) -> float:
        """Wait until ``output`` flows; return how long the program has stood still, in all, because its output was not
        taken. The launcher's word."""

    @abstractmethod
    async def ack(self, stream: str, offset: int) -> None:
        """All bytes of ``stream`` before ``offset`` are stored durably."""

    @abstractmethod
    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str = WORKSPACE,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        limit_bytes: int = 1 << 20,
        call_id: str | None = None,
        alone: bool = False,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run a tool call through the launcher; output beyond ``limit_bytes`` per stream is dropped and marked.

        ``on_output`` gets what the result will hold while it comes, each byte once and everything before the return. A
        repeated ``call_id`` awaits the running call, or returns its kept result. Ends when the program ends, not when
        its background children do. ``alone``: no other call may run and no program was started; the program is killed
        at its output limit, and with it ends every other process inside. Raises LauncherLost, ToolFailed.
        """

    @abstractmethod
    async def read_file(self, path: str, *, limit_bytes: int = 16 << 20) -> bytes:
        """Read a file below /workspace (through the launcher: the agent's word). Raises ToolFailed, LauncherLost."""

    @abstractmethod
    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file below /workspace through the launcher. Raises ToolFailed, LauncherLost."""

    @abstractmethod
    async def list_files(self, path: str = "", *, limit: int = 1000) -> Listing:
        """List one folder below /workspace, at most ``limit`` entries. Raises ToolFailed, LauncherLost."""

    @abstractmethod
    async def open_terminal(
        self, argv: Sequence[str], *, env: Mapping[str, str], rows: int = 24, columns: int = 80
    ) -> Terminal:
        """Start an interactive program in the workspace. Raises ToolFailed, LauncherLost."""

    @abstractmethod
    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Pipe:
        """Start a resident helper in the workspace, of at most 8. It ends with the connection that it was opened on, as
        by ``Pipe.close``. Raises ToolFailed, LauncherLost."""

    @abstractmethod
    async def announce_deadline(self, seconds_left: float) -> None:
        """Tell the program (file /workspace/.home/deadline) that it has this long. Best effort."""

    @abstractmethod
    async def plant(self, port: int) -> socket.socket:
        """Return a listening socket on 127.0.0.1:``port`` inside (CONTRACTS 5). Raises SandboxGone, SandboxRefused,
        EngineError, OSError (the port is taken)."""

    @abstractmethod
    async def dial(self, port: int) -> socket.socket:
        """Return a non-blocking socket that is connected to 127.0.0.1:``port`` inside. Raises ToolFailed
        (``port_closed``: nobody listens there, or takes the connection within 5 s), SandboxGone, SandboxRefused,
        EngineError."""

    @abstractmethod
    async def inspect(self) -> ContainerReport:
        """Ask the engine. A sandbox that the engine does not know is state GONE, not an error. Raises EngineError."""

    @abstractmethod
    async def sample(self) -> ResourceSample | None:
        """Read counters from the host's side; null when the container is not running."""

    @abstractmethod
    async def pause(self) -> None: ...

    @abstractmethod
    async def unpause(self) -> None: ...

    @abstractmethod
    async def kill(self) -> ContainerReport:
        """Kill everything inside and wait until the engine says it is dead. Raises EngineError."""

    @abstractmethod
    async def collect(self, roots: Sequence[str], limits: Limits, sink: FileSink) -> Deliverable:
        """Walk the roots of the *dead* sandbox and store regular files. Never follows a link, never opens a special file.

        Raises SandboxError if the sandbox is not dead, EngineError/OSError if the workspace cannot be read.
        """

    @abstractmethod
    async def destroy(self) -> None:
        """Remove container, volumes, mounts, loop device, files; nothing is left after it. Idempotent."""


class SandboxBackend(ABC):
    """A sandbox engine on this host."""

    @abstractmethod
    async def offered_runtimes(self) -> Sequence[str]:
        """Runtimes that passed the start-up self-test (a planted listener is reached from inside; host is not)."""

    @abstractmethod
    async def resolve_image(self, name: str) -> str:
        """Return the image id for a shipped name, tag or id. Raises SandboxRefused (unknown or unacceptable image)."""

    @abstractmethod
    async def make(self, spec: SandboxSpec) -> Sandbox:
        """Make a sandbox: workspace, container, attestation, launcher connected and keyed. Raises SandboxError."""

    @abstractmethod
    async def attach(self, sandbox_id: str) -> Sandbox:
        """Open a sandbox made earlier, perhaps by another process. Raises SandboxGone if no trace is left."""

    @abstractmethod
    async def list_ids(self) -> Sequence[str]:
        """Ids of all sandboxes of this deployment of which anything is left (container, volume, loop device, directory)."""

    @abstractmethod
    async def remove(self, sandbox_id: str) -> None:
        """Destroy by id whatever is left of it. Idempotent."""

    @abstractmethod
    async def close(self) -> None:
        """Stop listening and release threads; sandboxes go on."""

"""One sandbox on a Docker engine: the launcher's connection for what happens inside, the engine for its life."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from service.domain.artifacts import Deliverable
from service.domain.limits import Limits
from service.domain.run_states import ContainerState
from service.sandboxes.contract import (
    WORKSPACE,
    Command,
    ContainerReport,
    EngineError,
    ExecResult,
    Exited,
    FileSink,
    FileSource,
    Frame,
    Listing,
    OnOutput,
    Pipe,
    ResourceSample,
    Sandbox,
    SandboxGone,
    SandboxRefused,
    Terminal,
)
from service.sandboxes.docker import cgroup, planting
from service.sandboxes.docker.calls import CallPool
from service.sandboxes.docker.collect import collect
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.handles import Handle
from service.sandboxes.docker.link import LauncherLink
from service.sandboxes.docker.markers import read_markers
from service.sandboxes.docker.netns import check_own_namespace, raise_loopback
from service.sandboxes.docker.watch import DeathWatch
from service.sandboxes.docker.workspace import WorkspaceStore

COLLECT_S = 3600.0
HOST_CALL_S = 30.0
RESTART_SLACK_S = 5.0
"""A container that ended this long after the engine's start still ended with the restart."""


class DockerSandbox(Sandbox):
    def __init__(
        self,
        handle: Handle,
        *,
        engine: Engine,
        host: CallPool,
        home: Path,
        store: WorkspaceStore,
        link: LauncherLink,
        forget: Callable[[str], Awaitable[None]],
    ) -> None:
        self.id = handle.id
        self.spec = handle.spec
        self.handle = handle
        self.link = link
        self._engine = engine
        self._host = host
        self._home = home
        self._store = store
        self._forget = forget
        self._oom_kills = 0
        self._pid = 0
        self._paused = False
        self._watch = DeathWatch(self.inspect, link.mark_lost)

    @property
    def attestation(self) -> Mapping[str, Any]:
        return self.handle.attestation

    async def open(self) -> None:
        """Begin to watch the container's life. Raises EngineError, SandboxRefused (it shares a network of the host)."""
        report = await self.inspect()
        if report.state is ContainerState.RUNNING:
            await self._own_network(self._pid)
            self._watch.begin(self._pid, self.handle.container)
        else:
            self.link.mark_lost(f"the container is not running ({report.state.value})")

    async def _own_network(self, pid: int) -> None:
        check_own_namespace(pid)
        if self.spec.runtime != "runc":  # runc does it by itself
            await self._host.run("loopback", HOST_CALL_S, lambda: raise_loopback(pid))

    async def shut(self) -> None:
        """Stop listening and watching; the sandbox goes on."""
        await self._watch.end()
        await self.link.close()

    async def write_files(self, files: Sequence[FileSource]) -> None:
        await self.link.write_files(files)

    async def start(self, command: Command) -> None:
        await self.link.start(command)

    async def signal(self, number: int) -> bool:
        return await self.link.signal(number)

    async def waited_for_host_s(self) -> float:
        return await self.link.waited_for_host_s()

    def output(self) -> AsyncIterator[Frame | Exited]:
        return self.link.output()

    async def ack(self, stream: str, offset: int) -> None:
        await self.link.ack(stream, offset)

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
        return await self.link.exec(
            argv, stdin=stdin, cwd=cwd, env=env, timeout_s=timeout_s, limit_bytes=limit_bytes, call_id=call_id,
            alone=alone, on_output=on_output,
        )  # fmt: skip

    async def read_file(self, path: str, *, limit_bytes: int = 16 << 20) -> bytes:
        return await self.link.read_file(path, limit_bytes=limit_bytes)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self.link.write_file(path, data, mode=mode)

    async def list_files(self, path: str = "", *, limit: int = 1000) -> Listing:
        return await self.link.list_files(path, limit=limit)

    async def open_terminal(
        self, argv: Sequence[str], *, env: Mapping[str, str], rows: int = 24, columns: int = 80
    ) -> Terminal:
        return await self.link.open_terminal(argv, env=env, rows=rows, columns=columns)

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Pipe:
        return await self.link.open_pipe(argv, env=env)

    async def announce_deadline(self, seconds_left: float) -> None:
        await self.link.announce_deadline(seconds_left)

    async def plant(self, port: int) -> socket.socket:
        """Return a listening socket on 127.0.0.1:``port`` of the sandbox. Raises SandboxGone, SandboxRefused, EngineError."""
        return await planting.plant(self._engine, self.handle.container, port)

    async def dial(self, port: int) -> socket.socket:
        return await planting.dial(self._engine, self.handle.container, port)

    async def inspect(self) -> ContainerReport:
        try:
            found = await self._engine.inspect(self.handle.container)
        except SandboxGone:
            return ContainerReport(
                ContainerState.GONE, oom_kills=self._oom_kills, engine_restarted=await self._restarted(None)
            )
        return await self._report(found["State"])

    async def sample(self) -> ResourceSample | None:
        report = await self.inspect()
        if report.state is not ContainerState.RUNNING:
            return None
        counters = self._count()
        if counters is None:
            return None
        used = await self._host.run("disk use", HOST_CALL_S, lambda: self._store.used_bytes(self._home))
        return ResourceSample(counters.memory_bytes, counters.cpu_s, used, self._oom_kills)

    async def pause(self) -> None:
        await self._engine.pause(self.handle.container)

    async def unpause(self) -> None:
        await self._engine.unpause(self.handle.container)

    async def kill(self) -> ContainerReport:
        before = await self.inspect()  # the memory group's counter vanishes with the container
        if before.state is ContainerState.RUNNING:
            with suppress(SandboxGone):
                if self._paused and self.spec.runtime != "runc":
                    # gVisor does not die while it is frozen: the engine would wait ten seconds for it.
                    await self._engine.unpause(self.handle.container)
                await self._engine.kill(self.handle.container)
        after = await self.inspect()
        if after.state is ContainerState.RUNNING:
            raise EngineError("kill_failed", f"{self.id} still runs after SIGKILL")
        self.link.mark_lost("the sandbox was killed")
        return after

    async def collect(self, roots: Sequence[str], limits: Limits, sink: FileSink) -> Deliverable:
        if (await self.inspect()).state is ContainerState.RUNNING:
            raise SandboxRefused("sandbox_alive", "a live sandbox is not collected")
        if self.spec.in_memory:
            raise SandboxRefused("nothing_kept", "a workspace in memory is not collected")

        def work() -> Deliverable:
            with self._store.opened(self._home) as top:
                return collect(top, roots, limits, sink)

        return await self._host.run("collect", COLLECT_S, work)

    async def destroy(self) -> None:
        await self.shut()
        await self._forget(self.id)

    async def _report(self, state: Mapping[str, Any]) -> ContainerReport:
        running = bool(state["Running"])
        if running:
            self._pid = int(state["Pid"])
            self._paused = bool(state.get("Paused"))
            self._count()
        if state.get("OOMKilled"):
            self._oom_kills = max(self._oom_kills, 1)
        return ContainerReport(
            state=ContainerState.RUNNING if running else ContainerState.EXITED,
            exit_code=None if running else int(state["ExitCode"]),
            oom_kills=self._oom_kills,
            started_at=str(state["StartedAt"]),
            engine_restarted=await self._restarted(None if running else str(state["FinishedAt"])),
        )

    def _count(self) -> cgroup.Counters | None:
        counters = cgroup.read_counters(self._pid, self.handle.container)
        if counters is not None:
            self._oom_kills = max(self._oom_kills, counters.oom_kills)
        return counters

    async def _restarted(self, finished_at: str | None) -> bool:
        """Tell whether engine or host restarted since the sandbox was made and, if it ended, ended with that.

        A container that survived a restart of the engine (live-restore) and ends later ended for another reason.
        """
        made = self.handle.markers
        url = self._engine.url
        now = await self._host.run("markers", HOST_CALL_S, lambda: read_markers(url, made.engine_id))
        if not now.restarted_since(made):
            return False
        if now.boot_id != made.boot_id or finished_at is None or now.started_at is None:
            return True
        return _unix(finished_at) <= now.started_at + RESTART_SLACK_S


def _unix(stamp: str) -> float:
    """Return unix seconds of the engine's RFC 3339 time (nanoseconds are cut: fromisoformat takes six digits)."""
    seconds, _, rest = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{(rest or '0')[:6]:0<6}+00:00").timestamp()

"""A sandbox engine without an engine: local processes in temporary directories. For tests; it isolates nothing.

It passes the semantic part of the contract suite. ``MemoryHost`` is what outlives a worker: two backends on one host
are two workers one after the other. Engine faults are not tested with it, but by a proxy before a real engine.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.domain.artifacts import Deliverable
from service.domain.errors import Invalid
from service.domain.ids import new_id
from service.domain.limits import Limits
from service.domain.paths import check_relative_path
from service.domain.run_states import ContainerState
from service.sandboxes.contract import (
    STREAMS,
    WORKSPACE,
    Command,
    ContainerReport,
    ExecResult,
    Exited,
    FileSink,
    FileSource,
    Frame,
    LauncherLost,
    ListedFile,
    Listing,
    OnOutput,
    Pipe,
    ResourceSample,
    Sandbox,
    SandboxBackend,
    SandboxGone,
    SandboxRefused,
    SandboxSpec,
    Terminal,
    ToolFailed,
)
from service.sandboxes.docker.collect import collect
from service.testing.local_process import LocalProcess, spawn
from service.testing.memory_pipe import MemoryPipe
from service.testing.memory_process import MemoryProgram, environment

RUNTIME = "runc"
DRAIN_S = 0.5


@dataclass(slots=True)
class _Inside:
    """What exists of one sandbox apart from the worker that drives it."""

    spec: SandboxSpec
    root: Path
    program: MemoryProgram | None = None
    running: bool = True
    started_at: str = field(default_factory=lambda: datetime.fromtimestamp(time.time(), UTC).isoformat())
    calls: dict[str, "asyncio.Task[ExecResult]"] = field(default_factory=dict[str, "asyncio.Task[ExecResult]"])
    pipes: list[MemoryPipe] = field(default_factory=list[MemoryPipe])


class MemoryHost:
    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="memory-sandboxes-"))
        self.sandboxes: dict[str, _Inside] = {}
        self.images = {"base": "sha256:" + "0" * 64, "workbench": "sha256:" + "1" * 64}
        self.ports: dict[int, int] = {}
        """Port inside every sandbox → port on this machine that is dialled for it."""

    def close(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)


class MemorySandbox(Sandbox):
    def __init__(self, sandbox_id: str, host: MemoryHost) -> None:
        self.id = sandbox_id
        self._host = host
        self.spec = self._inside.spec

    @property
    def attestation(self) -> Mapping[str, Any]:
        return {"v": 1, "matched": 0, "fields": {}, "workspace": "memory", "soft_quota": True}

    async def write_files(self, files: Sequence[FileSource]) -> None:
        for source in files:
            data = source.data if source.data is not None else _content(source.file)
            await self.write_file(source.path, data, mode=source.mode)

    async def start(self, command: Command) -> None:
        inside = self._alive()
        if inside.program is None:
            inside.program = MemoryProgram(command, inside.root, self._cwd(command.cwd))

    async def signal(self, number: int) -> bool:
        program = self._alive().program
        return program is not None and program.tell(number)

    async def output(self) -> AsyncIterator[Frame | Exited]:
        program = self._alive().program
        if program is None:
            raise LauncherLost("launcher_lost", "no program was started")
        async for item in program.frames():
            yield item

    async def waited_for_host_s(self) -> float:
        program = self._alive().program
        return 0.0 if program is None else program.waited_s

    async def ack(self, stream: str, offset: int) -> None:
        program = self._alive().program
        if program is not None:
            await program.ack(stream, offset)

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
        del alone  # the program's group is killed at the end of every call here
        calls = self._alive().calls
        key = call_id or new_id("call")
        if key not in calls:
            command = Command(argv, dict(env or {"PATH": os.defpath}), stdin, cwd, timeout_s)
            calls[key] = asyncio.create_task(self._call(command, limit_bytes))
        try:
            result = await asyncio.shield(calls[key])
        except asyncio.CancelledError:
            if calls[key].cancelled():  # with its sandbox, not with its caller
                raise LauncherLost("launcher_lost", "the sandbox ended") from None
            raise
        if on_output is not None:
            for stream, data in zip(STREAMS, (result.stdout, result.stderr), strict=True):
                on_output(stream, data)
        return result

    async def read_file(self, path: str, *, limit_bytes: int = 16 << 20) -> bytes:
        target = self._path(path)
        if not target.is_file():
            raise ToolFailed("no_such_file", f"{path} is not a file")
        if target.stat().st_size > limit_bytes:
            raise ToolFailed("too_large", f"{path} is over {limit_bytes} bytes")
        return target.read_bytes()

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        target = self._path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)
        except OSError as error:
            raise ToolFailed("write_failed", f"{path}: {error.strerror}") from error

    async def list_files(self, path: str = "", *, limit: int = 1000) -> Listing:
        folder = self._alive().root if not path else self._path(path)
        if not folder.is_dir():
            raise ToolFailed("enoent", f"{path} is not a folder")
        found = [(p, p.lstat()) for p in sorted(folder.iterdir())]
        entries = [ListedFile(p.name, _kind(p), s.st_size, s.st_mtime) for p, s in found[:limit]]
        return Listing(tuple(entries), len(found) > limit)

    async def open_terminal(
        self, argv: Sequence[str], *, env: Mapping[str, str], rows: int = 24, columns: int = 80
    ) -> Terminal:
        del env, rows, columns
        raise ToolFailed("no_terminal", f"a memory sandbox has no terminals: {argv[0]} was not started")

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Pipe:
        inside = self._alive()
        pipe = MemoryPipe(argv, environment(env, inside.root), inside.root)
        inside.pipes.append(pipe)
        return pipe

    async def announce_deadline(self, seconds_left: float) -> None:
        await self.write_file(".home/deadline", f'{{"seconds_left": {seconds_left}}}'.encode())

    async def plant(self, port: int) -> socket.socket:
        raise SandboxRefused("no_network", f"a memory sandbox has no loopback of its own: nothing listens on {port}")

    async def dial(self, port: int) -> socket.socket:
        self._alive()
        try:
            made = socket.create_connection(("127.0.0.1", self._host.ports[port]), 5)
        except (KeyError, OSError) as error:
            raise ToolFailed("port_closed", f"nobody listens on {port}: {error}") from error
        made.setblocking(False)
        return made

    async def inspect(self) -> ContainerReport:
        inside = self._host.sandboxes.get(self.id)
        if inside is None:
            return ContainerReport(ContainerState.GONE)
        if inside.running:
            return ContainerReport(ContainerState.RUNNING, started_at=inside.started_at)
        return ContainerReport(ContainerState.EXITED, exit_code=137, started_at=inside.started_at)

    async def sample(self) -> ResourceSample | None:
        inside = self._host.sandboxes.get(self.id)
        if inside is None or not inside.running:
            return None
        return ResourceSample(0, 0.0, _used(inside.root), 0)

    async def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    async def unpause(self) -> None:
        self._signal(signal.SIGCONT)

    async def kill(self) -> ContainerReport:
        inside = self._host.sandboxes.get(self.id)
        if inside is not None:
            await _stop(inside, "the sandbox was killed")
        return await self.inspect()

    async def collect(self, roots: Sequence[str], limits: Limits, sink: FileSink) -> Deliverable:
        inside = self._inside
        if inside.running:
            raise SandboxRefused("sandbox_alive", "a live sandbox is not collected")
        return await asyncio.to_thread(_collect, inside.root, roots, limits, sink)

    async def destroy(self) -> None:
        await _destroy(self._host, self.id)

    @property
    def _inside(self) -> _Inside:
        try:
            return self._host.sandboxes[self.id]
        except KeyError:
            raise SandboxGone("sandbox_gone", f"nothing is left of {self.id}") from None

    def _alive(self) -> _Inside:
        inside = self._host.sandboxes.get(self.id)
        if inside is None or not inside.running:
            raise LauncherLost("launcher_lost", "the sandbox does not run")
        return inside

    def _signal(self, number: int) -> None:
        program = self._alive().program
        if program is not None:
            program.signal(number)

    def _path(self, path: str) -> Path:
        try:
            return self._alive().root / check_relative_path(path)
        except (ValueError, Invalid) as error:
            raise ToolFailed("bad_path", str(error)) from error

    def _cwd(self, cwd: str) -> Path:
        return self._alive().root / cwd.removeprefix(WORKSPACE).lstrip("/")

    async def _call(self, command: Command, limit: int) -> ExecResult:
        inside = self._alive()
        try:
            process = spawn(command.argv, environment(command.env, inside.root), self._cwd(command.cwd))
        except OSError as error:
            raise ToolFailed("cannot_run", f"{command.argv[0]}: {error.strerror}") from error
        outputs = {name: bytearray() for name in STREAMS}
        jobs = [asyncio.create_task(_read_all(process, n, outputs[n])) for n in STREAMS]
        jobs.append(asyncio.create_task(process.feed(command.stdin)))
        try:
            code, timed_out = await _end_of(process, command.deadline_s)
            await asyncio.wait(jobs, timeout=DRAIN_S)
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            await process.close()
        return ExecResult(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            stdout=bytes(outputs["stdout"][:limit]),
            stderr=bytes(outputs["stderr"][:limit]),
            truncated=max(len(data) for data in outputs.values()) > limit,
            timed_out=timed_out,
        )


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "link"
    return "directory" if path.is_dir() else "file" if path.is_file() else "other"


async def _end_of(process: LocalProcess, timeout_s: float) -> tuple[int, bool]:
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait(), False
    except TimeoutError:
        process.signal(signal.SIGKILL)
        return await process.wait(), True


async def _read_all(process: LocalProcess, name: str, into: bytearray) -> None:
    while data := await process.read(name):
        into += data


class MemoryBackend(SandboxBackend):
    def __init__(self, host: MemoryHost | None = None) -> None:
        self.host = host or MemoryHost()

    async def offered_runtimes(self) -> Sequence[str]:
        return [RUNTIME]

    async def resolve_image(self, name: str) -> str:
        if name in self.host.images.values():
            return name
        try:
            return self.host.images[name]
        except KeyError:
            raise SandboxRefused("image_unknown", f"this host has no image {name!r}") from None

    async def make(self, spec: SandboxSpec) -> MemorySandbox:
        if spec.runtime != RUNTIME:
            raise SandboxRefused("runtime_not_offered", f"{spec.runtime!r} is not known here")
        await self.resolve_image(spec.environment)
        sandbox_id = new_id("sbx")
        root = self.host.top / sandbox_id
        for name in ("output", ".home"):
            (root / name).mkdir(parents=True)
        self.host.sandboxes[sandbox_id] = _Inside(spec, root)
        return MemorySandbox(sandbox_id, self.host)

    async def attach(self, sandbox_id: str) -> MemorySandbox:
        if sandbox_id not in self.host.sandboxes:
            raise SandboxGone("sandbox_gone", f"nothing is left of {sandbox_id}")
        return MemorySandbox(sandbox_id, self.host)

    async def list_ids(self) -> Sequence[str]:
        return sorted(self.host.sandboxes)

    async def remove(self, sandbox_id: str) -> None:
        await _destroy(self.host, sandbox_id)

    async def close(self) -> None:
        """Sandboxes go on: they are the host's."""


async def _stop(inside: _Inside, why: str) -> None:
    inside.running = False
    for call in inside.calls.values():
        call.cancel()
    await asyncio.gather(*inside.calls.values(), return_exceptions=True)
    for pipe in inside.pipes:
        await pipe.kill()
    if inside.program is not None:
        await inside.program.kill(why)


async def _destroy(host: MemoryHost, sandbox_id: str) -> None:
    inside = host.sandboxes.pop(sandbox_id, None)
    if inside is not None:
        await _stop(inside, "the sandbox was destroyed")
        await asyncio.to_thread(shutil.rmtree, inside.root, ignore_errors=True)


def _collect(root: Path, roots: Sequence[str], limits: Limits, sink: FileSink) -> Deliverable:
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return collect(top, roots, limits, sink)
    finally:
        os.close(top)


def _content(path: Path | None) -> bytes:
    if path is None:
        raise ValueError("a file source has data or a file")
    return path.read_bytes()


def _used(root: Path) -> int:
    """Return the bytes on disk; programs go on making and removing files meanwhile."""
    used = 0
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                used += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118 - bytes of many files
    return used

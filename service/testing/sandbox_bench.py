"""What the checks of the sandbox contract are written with: a bench to work at, and a table to enter checks in."""

import hashlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from service.domain.artifacts import ArtifactEntry, Deliverable
from service.domain.limits import MIB, Limits
from service.sandboxes.contract import Command, Exited, Sandbox, SandboxBackend, SandboxSpec

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
SMALL = Limits(memory_bytes=256 * MIB, disk_bytes=64 * MIB, inodes=4000, shm_bytes=16 * MIB, pids=128)


class MemorySink:
    """A content store in memory: digest → bytes, at most ``keep`` bytes of each."""

    def __init__(self, keep: int = 16 * MIB) -> None:
        self.blobs: dict[str, bytes] = {}
        self.moved = 0
        self._keep = keep

    def store(self, fd: int, limit: int) -> tuple[str, int]:
        digest, total, kept = hashlib.sha256(), 0, b""
        os.lseek(fd, 0, os.SEEK_SET)
        while piece := os.read(fd, MIB):
            total += len(piece)
            if total > limit:
                raise ValueError(f"over {limit} bytes")
            digest.update(piece)
            kept += piece[: self._keep - len(kept)]
        self.moved += total
        self.blobs[digest.hexdigest()] = kept
        return digest.hexdigest(), total


@dataclass(frozen=True, slots=True)
class Ran:
    """A program's whole output and end."""

    stdout: bytes
    stderr: bytes
    end: Exited
    totals: dict[str, int]


@dataclass(frozen=True, slots=True)
class Bench:
    """One implementation under test. ``reopen`` gives a second worker's view of the same host."""

    backend: SandboxBackend
    spec: SandboxSpec
    reopen: Callable[[], Awaitable[SandboxBackend]]

    @asynccontextmanager
    async def sandbox(self, **limits: Any) -> AsyncGenerator[Sandbox]:
        """Give a fresh sandbox, with some limits changed; it is destroyed at the end."""
        spec = replace(self.spec, limits=self.spec.limits.model_copy(update=limits))
        sandbox = await self.backend.make(spec)
        try:
            yield sandbox
        finally:
            await self.backend.remove(sandbox.id)


async def drain(sandbox: Sandbox, *, keep: int = 64 * MIB) -> Ran:
    """Read a started program's output to its end, acknowledging every frame; frames must be contiguous."""
    kept = {"stdout": bytearray(), "stderr": bytearray()}
    totals = dict.fromkeys(kept, 0)
    async for item in sandbox.output():
        if isinstance(item, Exited):
            return Ran(bytes(kept["stdout"]), bytes(kept["stderr"]), item, totals)
        assert item.offset == totals[item.stream], f"{item.stream}: {item.offset} follows {totals[item.stream]}"
        totals[item.stream] += len(item.data)
        kept[item.stream] += item.data[: keep - len(kept[item.stream])]
        await sandbox.ack(item.stream, totals[item.stream])
    raise AssertionError("the output ended without the program's exit")


async def run(sandbox: Sandbox, argv: Sequence[str], *, stdin: bytes = b"", keep: int = 64 * MIB) -> Ran:
    await sandbox.start(Command(argv, ENV, stdin))
    return await drain(sandbox, keep=keep)


async def python(sandbox: Sandbox, code: str, *args: str, timeout_s: float = 60) -> str:
    """Run Python code as a tool call and return what it printed; it must succeed."""
    done = await sandbox.exec(["python3", "-c", code, *args], env=ENV, timeout_s=timeout_s)
    assert done.code == 0, (done.code, done.signal, done.stderr[-2000:])
    return done.stdout.decode()


async def delivered(
    sandbox: Sandbox, *roots: str, limits: Limits = SMALL, sink: MemorySink | None = None
) -> Deliverable:
    """Kill and collect."""
    await sandbox.kill()
    return await sandbox.collect(roots or ("output",), limits, sink or MemorySink())


def open_descriptors() -> int:
    """Return how many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def by_path(deliverable: Deliverable) -> dict[str, ArtifactEntry]:
    found = {e.path: e for e in deliverable.entries}
    assert len(found) == len(deliverable.entries), "two entries have the same path"
    return found


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    run: Callable[[Bench], Awaitable[None]]
    semantic: bool
    """Holds for every implementation, the memory fake included; the others need an operating system's fences."""
    faults: tuple[int, ...] = ()
    """Numbers of the fault catalogue."""
    runtimes: tuple[str, ...] = ()
    """Only on these runtimes; empty: on all."""


@dataclass(slots=True)
class CheckTable:
    checks: list[Check] = field(default_factory=list[Check])

    def add(
        self, *faults: int, semantic: bool = True, runtimes: tuple[str, ...] = ()
    ) -> Callable[[Callable[[Bench], Awaitable[None]]], Callable[[Bench], Awaitable[None]]]:
        def enter(function: Callable[[Bench], Awaitable[None]]) -> Callable[[Bench], Awaitable[None]]:
            name = getattr(function, "__name__", "check")
            self.checks.append(Check(name, function, semantic, faults, runtimes))
            return function

        return enter

"""``desktop_start``: from nothing to a screen that answers, against a plain container of the same profile."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from service.desktop.environment import SCREEN_ENVIRONMENT
from service.desktop.session import DesktopSession
from service.domain.agents import Surface
from service.domain.desktop import HEIGHT, WIDTH, Size
from service.domain.limits import GIB, Limits
from service.sandboxes.contract import HOME, SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from tests.bench.docker_cli import docker_run_first_byte, profile_options
from tests.bench.report import Result, median_ratio

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": HOME, **SCREEN_ENVIRONMENT}
SCREEN = Size(width=WIDTH, height=HEIGHT)
FACTOR, ADDED_S = 1.5, 0.6


def desktop_start(pairs: int = 10) -> Result:
    ours, opened, plain = asyncio.run(_measure(pairs))
    value, base = statistics.median(ours), statistics.median(plain)
    detail = {
        "pairs": pairs,
        "sandbox_s": value - statistics.median(opened),
        "screen_s": statistics.median(opened),
        "allowed_s": FACTOR * base + ADDED_S,
    }
    goal = f"≤ {FACTOR} * baseline + {ADDED_S} s"
    return Result("desktop_start", value, "s", base, median_ratio(ours, plain), goal, detail)


async def _measure(pairs: int) -> tuple[list[float], list[float], list[float]]:
    ours: list[float] = []
    opened: list[float] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as directory:
        backend = DockerBackend(Path(directory), "wsbench-desktop", runtimes=["runc"])
        try:
            image, base = await backend.resolve_image("desktop"), await backend.resolve_image("base")
            spec = SandboxSpec(image, limits=Limits(disk_bytes=GIB, cpus=2), confinement="desktop")
            for turn in range(pairs + 1):
                whole, screen = await _once(backend, spec)
                other = docker_run_first_byte(base, ["/bin/echo", "first"], profile_options())
                if turn:  # the first pair reads the programs from the disk
                    ours.append(whole)
                    opened.append(screen)
                    plain.append(other)
        finally:
            await backend.close()
    return ours, opened, plain


async def _once(backend: DockerBackend, spec: SandboxSpec) -> tuple[float, float]:
    """Return seconds until the screen was there, and how many of them were the screen's own."""
    started = time.perf_counter()
    sandbox = await backend.make(spec)
    made = time.perf_counter()
    try:
        session = await DesktopSession.open(sandbox, env=ENV, surface=Surface.DESKTOP, size=SCREEN)
        ready = time.perf_counter()
        await session.close()
        return ready - started, ready - made
    finally:
        await backend.remove(sandbox.id)

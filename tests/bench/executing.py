"""``exec``: one tool call in a running sandbox, against the engine's own exec and SWE-ReX."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import docker

from service.domain.limits import MIB, Limits
from service.sandboxes.contract import SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from tests.bench.peer_swerex import execs
from tests.bench.report import Result, median_ratio

CALL = ["/bin/true"]


def exec_(calls: int = 50) -> Result:
    ours, sdk, cli = asyncio.run(_measure(calls))
    peer = execs(30)
    detail = {"calls": calls, "docker_cli_s": statistics.median(cli), "swe_rex_s": peer and statistics.median(peer)}
    value, base = statistics.median(ours), statistics.median(sdk)
    return Result("exec", value, "s", base, median_ratio(ours, sdk), "≤ 0.05", detail)


async def _measure(calls: int) -> tuple[list[float], list[float], list[float]]:
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as directory:
        backend = DockerBackend(Path(directory), "wsbench", runtimes=["runc"])
        try:
            spec = SandboxSpec(await backend.resolve_image("base"), limits=Limits(disk_bytes=64 * MIB))
            sandbox = await backend.make(spec)
            try:
                return await _alternate(sandbox, calls)
            finally:
                await sandbox.destroy()
        finally:
            await backend.close()


async def _alternate(sandbox: Any, calls: int) -> tuple[list[float], list[float], list[float]]:
    name = _container(sandbox.id)
    container = docker.from_env().containers.get(name)
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for turn in range(calls + 3):
        started = time.perf_counter()
        result = await sandbox.exec(CALL)
        ours = time.perf_counter() - started
        assert result.code == 0
        sdk = _timed(lambda: container.exec_run(CALL))
        cli = _timed(lambda: subprocess.run(["docker", "exec", name, *CALL], check=True, timeout=30))
        if turn >= 3:
            for series, took in zip(times, (ours, sdk, cli), strict=True):
                series.append(took)
    return times


def _timed(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _container(sandbox_id: str) -> str:
    argv = ["docker", "ps", "-q", "--no-trunc", "--filter", f"label=org.workstead.sandbox={sandbox_id}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.strip()

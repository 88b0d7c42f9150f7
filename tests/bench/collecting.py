"""``collect``: a dead sandbox's files into the content store, against ``docker cp``; both durable at the end."""

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.domain.limits import GIB, MIB, Limits
from service.sandboxes.contract import Sandbox, SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from service.store.blobs import BlobStore
from service.testing.sandbox_bench import python
from tests.bench.report import Result, median_ratio

WRITER = """
import os, pathlib, sys
files, size = int(sys.argv[1]), int(sys.argv[2])
for n in range(files):
    path = pathlib.Path(f"/workspace/output/{n % 100:02}/{n}.bin")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))
"""


def collect(files: int = 10_000, total_bytes: int = GIB, pairs: int = 3) -> Result:
    times = asyncio.run(_measure(files, total_bytes // files, pairs))
    ours, cp, durable = times["ours"], times["docker cp"], times["docker cp, durable"]
    detail: dict[str, Any] = {"files": files, "bytes": total_bytes, "pairs": pairs}
    detail |= {"docker_cp_not_durable_s": statistics.median(cp), "ratio_to_not_durable": median_ratio(ours, cp)}
    value, base = statistics.median(ours), statistics.median(durable)
    return Result("collect", value, "s", base, median_ratio(ours, durable), "≤ 0.5", detail)


async def _measure(files: int, size: int, pairs: int) -> dict[str, list[float]]:
    limits = Limits(disk_bytes=2 * files * size + 256 * MIB, inodes=2 * files + 2000, memory_bytes=512 * MIB)
    with tempfile.TemporaryDirectory(prefix="workstead-bench-") as directory:
        backend = DockerBackend(Path(directory), "wsbench", runtimes=["runc"])
        try:
            sandbox = await backend.make(SandboxSpec(await backend.resolve_image("base"), limits=limits))
            try:
                await python(sandbox, WRITER, str(files), str(size), timeout_s=600)
                await sandbox.kill()
                return await _alternate(sandbox, limits, Path(directory), files, pairs)
            finally:
                await sandbox.destroy()
        finally:
            await backend.close()


async def _alternate(
    sandbox: Sandbox, limits: Limits, directory: Path, files: int, pairs: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"ours": [], "docker cp": [], "docker cp, durable": []}
    container = _container(sandbox.id)
    for _ in range(pairs):
        with _fresh(directory) as place:
            started = time.perf_counter()
            await _ours(sandbox, limits, place, files)
            times["ours"].append(time.perf_counter() - started)
        with _fresh(directory) as place:
            started = time.perf_counter()
            _run("docker", "cp", "-q", f"{container}:/workspace/output", place)
            times["docker cp"].append(time.perf_counter() - started)
            _run("sync", "-f", place)
            times["docker cp, durable"].append(time.perf_counter() - started)
    return times


async def _ours(sandbox: Sandbox, limits: Limits, place: str, files: int) -> None:
    with BlobStore(Path(place)).staging() as staging:
        found = await sandbox.collect(["output"], limits, staging)
        await asyncio.to_thread(staging.keep_all)
    assert len(found.files) == files


@contextmanager
def _fresh(directory: Path) -> Generator[str]:
    """An empty folder on a disk that has nothing left to write."""
    _run("sync")
    place = tempfile.mkdtemp(dir=directory)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=600)


def _container(sandbox_id: str) -> str:
    argv = ["docker", "ps", "-aq", "--no-trunc", "--filter", f"label=org.workstead.sandbox={sandbox_id}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.strip()

"""After everything, nothing: containers, volumes, loop devices, mounts, directories, whatever was interrupted."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.domain.limits import MIB
from service.domain.run_states import ContainerState
from service.sandboxes.contract import EngineError, LauncherLost, SandboxGone
from service.sandboxes.docker import loopdev, maker, mounts
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import DEPLOYMENT_LABEL
from service.sandboxes.docker.workspace import PlainWorkspaces
from service.testing.sandbox_bench import ENV, SMALL, Bench, MemorySink, by_path, delivered, drain, python, run

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORKER = """
import asyncio, sys
from pathlib import Path
from service.sandboxes.contract import Command, SandboxSpec
from service.sandboxes.docker.backend import DockerBackend
from service.testing.sandbox_bench import ENV, SMALL
async def main():
    backend = DockerBackend(Path(sys.argv[1]), sys.argv[2], runtimes=["runc"])
    sandbox = await backend.make(SandboxSpec(await backend.resolve_image("base"), limits=SMALL))
    print(sandbox.id, flush=True)
    await sandbox.start(Command(["sh", "-c", "for i in $(seq 200); do echo $i; sleep 0.02; done"], ENV))
    async for frame in sandbox.output():
        print("frame", flush=True)
asyncio.run(main())
"""


async def traces(backend: DockerBackend, sandbox_id: str) -> list[str]:
    engine = backend.engine
    label = f"{DEPLOYMENT_LABEL}={backend.deployment}"
    found = [str(c["Names"]) for c in await engine.containers(label)]
    found += [str(v["Name"]) for v in await engine.volumes(label)]
    home = backend.data_dir / "sandboxes" / sandbox_id
    found += loopdev.devices_below(home) + [str(m) for m in mounts.mounts_below(home)]
    return [f for f in found if sandbox_id in f or f.startswith("/")] + ([str(home)] if home.exists() else [])


@pytest.mark.fault(102)
async def test_after_a_run_nothing_is_left(bench: Bench, backend: DockerBackend) -> None:
    async with bench.sandbox() as sandbox:
        await run(sandbox, ["true"])
        assert len(await traces(backend, sandbox.id)) >= 4
        await delivered(sandbox)
        await sandbox.destroy()
        assert await traces(backend, sandbox.id) == []


@pytest.mark.fault(111)
async def test_kill_9_of_the_worker_loses_no_output_and_no_sandbox(backend: DockerBackend) -> None:
    argv = [sys.executable, "-c", WORKER, str(backend.data_dir), backend.deployment]
    worker = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert worker.stdout is not None
    sandbox_id = (await worker.stdout.readline()).decode().strip()
    for _ in range(3):
        await worker.stdout.readline()
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    sandbox = await backend.attach(sandbox_id)
    assert (await sandbox.inspect()).state is ContainerState.RUNNING
    assert await backend.attach(sandbox_id) is sandbox
    ran = await drain(sandbox)
    assert ran.stdout == b"".join(b"%d\n" % i for i in range(1, 201)), "nothing was acknowledged: all must come again"
    await sandbox.destroy()
    assert await traces(backend, sandbox_id) == []


@pytest.mark.parametrize("missing", ["container", "volume", "directory", "loop"])
async def test_partial_traces_are_listed_and_removed(bench: Bench, backend: DockerBackend, missing: str) -> None:
    other = DockerBackend(backend.data_dir, backend.deployment, runtimes=["runc"])
    sandbox = await other.make(bench.spec)
    await other.close()
    name, home = f"{backend.deployment}-{sandbox.id}", backend.data_dir / "sandboxes" / sandbox.id
    if missing != "directory":
        await backend.engine.remove(name)
    if missing in ("volume", "loop"):
        await backend.engine.remove_volume(name)
    if missing == "loop":
        (home / "workspace.img").unlink()  # the device stays, on a deleted file
    if missing == "directory":
        shutil.rmtree(home)
    assert sandbox.id in await backend.list_ids()
    await backend.remove(sandbox.id)
    assert await traces(backend, sandbox.id) == []
    assert sandbox.id not in await backend.list_ids()
    with pytest.raises(SandboxGone):
        await backend.attach(sandbox.id)


async def test_an_engine_that_keeps_a_volume_keeps_no_disk(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kept(_engine: Engine, name: str) -> None:
        raise EngineError("engine_error", f"volume remove: remove {name}: volume has active mounts")

    sandbox = await backend.make(bench.spec)
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "remove_volume", kept)
        with pytest.raises(EngineError, match="active mounts"):
            await sandbox.destroy()
        assert await traces(backend, sandbox.id) == [f"{backend.deployment}-{sandbox.id}"]
    assert sandbox.id in await backend.list_ids()
    await backend.remove(sandbox.id)
    assert await traces(backend, sandbox.id) == []


async def test_a_mount_left_by_a_crash_is_found(bench: Bench, backend: DockerBackend) -> None:
    async with bench.sandbox() as sandbox:
        await sandbox.write_file("output/x", b"x")
        await sandbox.kill()
        home = backend.data_dir / "sandboxes" / sandbox.id
        (device,) = loopdev.devices_below(home)
        (home / "collect").mkdir()
        mounts.mount_read_only(device, home / "collect")
        assert mounts.mounts_below(home)
        assert "output/x" in by_path(await sandbox.collect(["output"], SMALL, MemorySink())), "collects over it"
        mounts.mount_read_only(device, home / "collect")
        await sandbox.destroy()
        assert await traces(backend, sandbox.id) == []


@pytest.mark.parametrize("step", ["create_body", "attest", "read_markers", "LauncherLink"])
async def test_a_failed_make_leaves_nothing(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LauncherLost("launcher_lost", "on purpose")

    before = await backend.list_ids()
    monkeypatch.setattr(maker, step, fail)
    with pytest.raises(LauncherLost):
        await backend.make(bench.spec)
    assert await backend.list_ids() == before


async def test_a_cancelled_make_leaves_nothing(bench: Bench, backend: DockerBackend) -> None:
    before = await backend.list_ids()
    for after in (0.01, 0.05, 0.15):
        task = asyncio.create_task(backend.make(bench.spec))
        await asyncio.sleep(after)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(1)
    for sandbox_id in set(await backend.list_ids()) - set(
        before
    ):  # made by the engine after we had given up: the reaper's
        await backend.remove(sandbox_id)
    assert await backend.list_ids() == before


async def test_a_container_removed_by_somebody_is_gone(bench: Bench, backend: DockerBackend) -> None:
    async with bench.sandbox() as sandbox:
        await backend.engine.remove(f"{backend.deployment}-{sandbox.id}")
        assert (await sandbox.inspect()).state is ContainerState.GONE
        assert (await sandbox.kill()).state is ContainerState.GONE
        with pytest.raises(LauncherLost):
            await sandbox.exec(["true"], env=ENV)


async def test_the_soft_back_end_does_the_same_without_a_quota(
    bench: Bench, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_soft(_data_dir: Path) -> PlainWorkspaces:
        return PlainWorkspaces()

    monkeypatch.setattr("service.sandboxes.docker.backend.probe", only_soft)
    soft = DockerBackend(backend.data_dir, backend.deployment, runtimes=["runc"])
    assert await soft.workspace_kind() == ("directory", True)
    sandbox = await soft.make(bench.spec)
    assert sandbox.attestation["soft_quota"] is True
    await python(sandbox, "open('output/x', 'wb').write(bytes(3 << 20)); open('.home/y', 'w')")
    sample = await sandbox.sample()
    assert sample is not None
    assert sample.disk_used_bytes is not None
    assert sample.disk_used_bytes >= 3 * MIB
    assert set(by_path(await delivered(sandbox))) == {"output/x"}
    await sandbox.destroy()
    assert await traces(backend, sandbox.id) == []
    await soft.close()


async def test_an_engine_that_is_not_there_is_an_engine_error(tmp_path: Path) -> None:
    engine = Engine(f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineError, match="info"):
        await engine.info()
    engine.close()

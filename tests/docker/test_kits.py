"""Environment and kit together: whose Python the launcher takes, and what is refused before anything is made."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from service.sandboxes.contract import SandboxRefused
from service.sandboxes.docker.backend import DockerBackend
from service.sandboxes.docker.sandbox import DockerSandbox
from service.testing.sandbox_bench import ENV
from service.testing.sandbox_suite import Bench
from tests.docker.hostile import built_image, remove_image

_MUSL = ["USER root", "RUN touch /lib/ld-musl-x86_64.so.1 && rm /lib64/ld-linux-x86-64.so.2"]
"""What an environment with musl shows of it: its loader, and not the other."""
_FOREIGN = ["USER root", "RUN mkdir -p /opt/kit/bin && cp /bin/true /opt/kit/bin/tool"]


@pytest_asyncio.fixture(loop_scope="session")
async def kit(backend: DockerBackend) -> AsyncIterator[str]:
    yield await backend.resolve_image("kits/codex")
    for volume in [v for v in await backend.engine.volumes("org.workstead.kit") if backend.deployment in v["Name"]]:
        await backend.engine.remove_volume(volume["Name"])


async def test_the_kits_python_runs_the_launcher_where_the_environment_has_none(
    bench: Bench, backend: DockerBackend, kit: str
) -> None:
    plain = await backend.resolve_image("root")
    sandbox = await backend.make(replace(bench.spec, environment=plain, kit=kit))
    try:
        path = {"PATH": f"/opt/kit/bin:{ENV['PATH']}"}
        found = await sandbox.exec(["sh", "-c", "command -v python3; codex --version"], env=path)
        assert found.stdout == b"codex-cli 0.171.0\n"
        assert isinstance(sandbox, DockerSandbox)
        assert sandbox.handle.interpreter == "/opt/kit/python/bin/python3"
    finally:
        await sandbox.destroy()


async def test_without_any_python_it_is_refused(bench: Bench, backend: DockerBackend) -> None:
    plain = await backend.resolve_image("root")
    with pytest.raises(SandboxRefused, match="has a Python"):
        await backend.make(replace(bench.spec, environment=plain))


async def test_musl_takes_a_kit_with_its_own_loader_and_refuses_another(
    bench: Bench, backend: DockerBackend, kit: str
) -> None:
    musl = await asyncio.to_thread(built_image, bench.spec.environment, _MUSL)
    foreign = await asyncio.to_thread(built_image, bench.spec.environment, _FOREIGN)
    static = await asyncio.to_thread(built_image, foreign, ["LABEL org.workstead.libc=none"])
    try:
        with pytest.raises(SandboxRefused, match="musl") as refused:
            await backend.make(replace(bench.spec, environment=musl, kit=foreign))
        assert refused.value.type == "kit_needs_glibc"
        sandbox = await backend.make(replace(bench.spec, environment=musl, kit=kit))
        try:
            assert (await sandbox.exec(["/opt/kit/bin/codex", "--version"], env=ENV)).code == 0
        finally:
            await sandbox.destroy()
        assert (await backend.images.kit(static)).any_library
    finally:
        for image in (static, musl, foreign):
            await asyncio.to_thread(remove_image, image)


async def test_the_volume_of_a_kit_goes_when_its_image_went(bench: Bench, backend: DockerBackend) -> None:
    kit = await asyncio.to_thread(built_image, bench.spec.environment, _FOREIGN)
    sandbox = await backend.make(replace(bench.spec, kit=kit))
    await sandbox.destroy()
    name = f"{backend.deployment}-kit-{kit.removeprefix('sha256:')[:16]}"
    assert await _restarted_has(backend, name), "as long as the image is there, it is used again"
    await asyncio.to_thread(remove_image, kit)
    assert not await _restarted_has(backend, name)


async def _restarted_has(backend: DockerBackend, volume: str) -> bool:
    """Tell whether the volume is there after a new process of the same deployment has started."""
    again = DockerBackend(backend.data_dir, backend.deployment)
    try:
        await again.workspace_kind()
        return volume in {v["Name"] for v in await again.engine.volumes("org.workstead.kit")}
    finally:
        await again.close()

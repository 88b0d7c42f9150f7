"""Images are hostile input: their metadata and programs reach neither the profile nor the collection."""

import asyncio
from dataclasses import replace

import pytest

from service.sandboxes.contract import SandboxRefused
from service.sandboxes.docker.backend import DockerBackend
from service.testing.sandbox_bench import ENV, by_path, delivered, python, run
from service.testing.sandbox_suite import Bench
from tests.docker.hostile import (
    anonymous_volumes,
    built_image,
    docker,
    hostile_image,
    image_with_files,
    labels,
    remove_image,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.fault(103, 105)
async def test_metadata_is_neutralised(bench: Bench, backend: DockerBackend) -> None:
    changes = [
        "USER root", "VOLUME /data", "VOLUME /var/lib/other", "STOPSIGNAL SIGWINCH", "ENTRYPOINT [\"/bin/false\"]",
        "HEALTHCHECK CMD touch /tmp/checked", "ENV LD_PRELOAD=/no/such.so", "ENV PYTHONSTARTUP=/x", "ENV BASH_ENV=/x",
        "LABEL org.workstead.deployment=other", "LABEL org.workstead.sandbox=sbx_SPOOFED", "WORKDIR /srv", "CMD [\"x\"]",
    ]  # fmt: skip
    before = anonymous_volumes()
    image = await asyncio.to_thread(built_image, bench.spec.environment, changes)
    try:
        sandbox = await backend.make(replace(bench.spec, environment=image))
        ran = await run(sandbox, ["sh", "-c", "id -u; pwd; df /data /var/lib/other | grep -c tmpfs; ls /tmp; env"])
        lines = ran.stdout.decode().splitlines()
        assert lines[:3] == ["10001", "/workspace", "2"]
        assert not [line for line in lines if "LD_PRELOAD=/" in line or "checked" in line]
        environ = await python(sandbox, "print(open('/proc/1/environ').read())")
        assert "/no/such.so" not in environ
        found = labels(f"{backend.deployment}-{sandbox.id}")
        assert found["org.workstead.sandbox"] == sandbox.id
        assert found["org.workstead.deployment"] == backend.deployment
        await sandbox.destroy()
        assert anonymous_volumes() <= before
    finally:
        await asyncio.to_thread(remove_image, image)


@pytest.mark.fault(7)
@pytest.mark.parametrize("workdir", ["/proc/self/fd/8", "/sys/x", "/dev/shm", "/a:b"])
async def test_a_dangerous_workdir_is_refused(bench: Bench, backend: DockerBackend, workdir: str) -> None:
    image = await asyncio.to_thread(hostile_image, bench.spec.environment, [f"WORKDIR {workdir}"])
    try:
        with pytest.raises(SandboxRefused, match="WORKDIR"):
            await backend.resolve_image(image)
        with pytest.raises(SandboxRefused, match="WORKDIR"):
            await backend.make(replace(bench.spec, environment=image))
    finally:
        await asyncio.to_thread(remove_image, image)


@pytest.mark.fault(107)
async def test_fake_programs_do_not_reach_collection(bench: Bench, backend: DockerBackend) -> None:
    script = "for f in tar ls cat ps find cp; do printf '#!/bin/sh\\necho EVIL\\n' > /usr/local/bin/$f; chmod 755 /usr/local/bin/$f; done"
    image = await asyncio.to_thread(image_with_files, bench.spec.environment, script)
    try:
        sandbox = await backend.make(replace(bench.spec, environment=image))
        assert (await sandbox.exec(["cat", "x"], env=ENV)).stdout == b"EVIL\n"
        await sandbox.write_file("output/real", b"real")
        assert by_path(await delivered(sandbox))["output/real"].size_bytes == 4
        await sandbox.destroy()
    finally:
        await asyncio.to_thread(remove_image, image)


@pytest.mark.fault(106)
async def test_names_resolve_only_on_our_own_tags(backend: DockerBackend) -> None:
    for name in ("no-such-image", "../x", "scratch", "sha256:" + "0" * 64, "workstead/base:none"):
        with pytest.raises(SandboxRefused):
            await backend.resolve_image(name)
    labelled = await asyncio.to_thread(
        built_image, await backend.resolve_image("base"), ["LABEL org.workstead.image=spoofed"]
    )
    await asyncio.to_thread(docker, "tag", labelled, "foreign/spoofed:1")
    try:
        with pytest.raises(SandboxRefused):
            await backend.resolve_image("spoofed")
    finally:
        await asyncio.to_thread(remove_image, "foreign/spoofed:1")
    resolved = await backend.resolve_image("base")
    assert resolved.startswith("sha256:")
    assert await backend.resolve_image(resolved) == resolved


async def test_a_kit_is_mounted_read_only(bench: Bench, backend: DockerBackend) -> None:
    script = "mkdir -p /opt/kit/bin && echo '#!/bin/sh\necho kit' > /opt/kit/bin/tool && chmod 755 /opt/kit/bin/tool"
    kit = await asyncio.to_thread(image_with_files, bench.spec.environment, script)
    try:
        sandbox = await backend.make(replace(bench.spec, kit=kit))
        assert (await sandbox.exec(["/opt/kit/bin/tool"], env=ENV)).stdout == b"kit\n"
        refused = await sandbox.exec(["sh", "-c", "echo x > /opt/kit/bin/tool"], env=ENV)
        assert refused.code != 0
        assert b"Read-only" in refused.stderr
        await sandbox.destroy()
        with pytest.raises(SandboxRefused, match="/opt/kit"):
            await backend.make(replace(bench.spec, kit=bench.spec.environment))
    finally:
        for volume in [v for v in await backend.engine.volumes("org.workstead.kit") if backend.deployment in v["Name"]]:
            await backend.engine.remove_volume(volume["Name"])
        await asyncio.to_thread(remove_image, kit)

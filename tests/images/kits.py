"""Kits in environments: an environment's container with a kit image's /opt/kit mounted as a sandbox has it."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from sandbox_images.engine import pack
from tests.images.containers import client

_DEADLINE_S = 120
_MAKE_BARE = """\
ARG PARENT
FROM ${PARENT} AS kit
FROM scratch
COPY --from=kit /bin/busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
"""


def is_kit(name: str) -> bool:
    """Tell whether an image has no system around its /opt/kit."""
    return name.startswith("kits/") and name != "kits/base"


@contextmanager
def environments(images: dict[str, dict[str, str | None]]) -> Generator[dict[str, str]]:
    """Give images to mount kits into: ``base``; ``plain``, without Python; ``bare``, with static programs only."""
    made = f"workstead-test/bare:{uuid4().hex[:8]}"
    context = pack({"Dockerfile": (_MAKE_BARE.encode(), 0o644)})
    with client() as engine:
        arguments = {"PARENT": str(images["kits/base"]["tag"])}
        engine.images.build(fileobj=context, custom_context=True, tag=made, buildargs=arguments, rm=True, forcerm=True)
        try:
            yield {"base": str(images["base"]["id"]), "plain": str(images["root"]["id"]), "bare": made}
        finally:
            engine.images.remove(made, force=True)


@contextmanager
def volume_of(kit: str) -> Generator[str]:
    """Give a volume that holds the /opt/kit of a kit image."""
    with client() as engine:
        volume: Any = engine.volumes.create(name=f"workstead-test-kit-{uuid4().hex[:8]}")
        try:
            mount = [{"Type": "volume", "Source": volume.name, "Target": "/opt/kit"}]
            made = engine.api.create_container_from_config(
                {"Image": kit, "Entrypoint": ["/"], "HostConfig": {"NetworkMode": "none", "Mounts": mount}}
            )
            engine.api.remove_container(made["Id"])
            yield volume.name
        finally:
            volume.remove(force=True)


def run_with_kit(environment: str, volume: str, script: str) -> tuple[int, str]:
    """Run a shell script as a sandbox would, with the kit mounted read-only. Returns (code, output)."""
    with client() as engine:
        container = engine.containers.create(
            environment,
            ["sh", "-c", script],
            entrypoint=[],
            user="10001:10001",
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            tmpfs={"/tmp": "size=64m,mode=1777,exec"},
            volumes={volume: {"bind": "/opt/kit", "mode": "ro,nocopy"}},
            mem_limit="1g",
            pids_limit=256,
            environment={"LD_LIBRARY_PATH": "", "LANG": "C.UTF-8"},
        )
        try:
            container.start()
            code = int(container.wait(timeout=_DEADLINE_S)["StatusCode"])
            return code, container.logs().decode(errors="replace")
        finally:
            container.remove(force=True)

"""Make one sandbox: workspace, container, attestation, launcher connected and keyed."""

import os
import time
from pathlib import Path
from typing import Any

from service.domain.ids import new_id
from service.sandboxes.contract import SandboxRefused, SandboxSpec
from service.sandboxes.docker.attestation import attest
from service.sandboxes.docker.calls import CallPool
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import DEPLOYMENT_LABEL, SANDBOX_LABEL, HostFacts, ImageFacts, KitFacts, Placement
from service.sandboxes.docker.handles import Handle, Handles
from service.sandboxes.docker.images import KIT_LOADER, LIBRARY_LABEL, Images
from service.sandboxes.docker.kits import Kits
from service.sandboxes.docker.link import LauncherLink
from service.sandboxes.docker.markers import read_markers
from service.sandboxes.docker.profile import PROGRAM, create_body
from service.sandboxes.docker.workspace import WorkspaceStore

HOST_CALL_S = 60.0
CONNECT_S = 30.0
KEY_BYTES = 32
_NEEDS_GLIBC = (
    "the environment's C library is musl, and the kit does not say that its programs run there: take an environment with "
    f"glibc, or a kit with a loader of its own ({KIT_LOADER}), or with static programs (label {LIBRARY_LABEL}=none)"
)


class Maker:
    def __init__(
        self,
        *,
        engine: Engine,
        host: CallPool,
        handles: Handles,
        store: WorkspaceStore,
        images: Images,
        kits: Kits,
        facts: HostFacts,
        deployment: str,
    ) -> None:
        self._engine = engine
        self._host = host
        self._handles = handles
        self._store = store
        self._images = images
        self._kits = kits
        self._facts = facts
        self._deployment = deployment

    async def make(self, sandbox_id: str, spec: SandboxSpec) -> tuple[Handle, LauncherLink]:
        """Return a running sandbox's handle and its keyed connection. The caller removes what is left of a failure.

        Raises SandboxRefused, EngineError, LauncherLost.
        """
        if spec.in_memory and spec.limits.disk_bytes > spec.limits.memory_bytes // 2:
            raise SandboxRefused("workspace_too_large", "a workspace in memory takes at most half of the memory limit")
        image = await self._images.facts(spec.environment)
        interpreter = await self._interpreter(spec, image)
        kit_volume = await self._kits.volume(spec.kit) if spec.kit else None
        home, options = await self._host.run("workspace", HOST_CALL_S, lambda: self._prepare(sandbox_id, spec))
        key = os.urandom(KEY_BYTES)
        link = LauncherLink(home / "control", key, may_key=True, shared=self._handles.shared)
        await link.listen()
        try:
            place = self._place(sandbox_id, home, interpreter, kit_volume)
            handle = await self._container(spec, image, place, options, key)
            await self._engine.start(handle.container)
            await link.wait_connected(CONNECT_S)
        except BaseException:
            await link.close()
            raise
        return handle, link

    def _prepare(self, sandbox_id: str, spec: SandboxSpec) -> tuple[Path, dict[str, str]]:
        home = self._handles.make_home(sandbox_id)
        return home, {} if spec.in_memory else self._store.create(home, spec.limits)

    def _place(self, sandbox_id: str, home: Path, interpreter: str, kit_volume: str | None) -> Placement:
        return Placement(
            deployment=self._deployment,
            sandbox_id=sandbox_id,
            control_dir=str(home / "control"),
            workspace_volume=f"{self._deployment}-{sandbox_id}",
            interpreter=(interpreter, "-I", "-S", PROGRAM),
            kit_volume=kit_volume,
        )

    async def _container(
        self, spec: SandboxSpec, image: ImageFacts, place: Placement, options: dict[str, str], key: bytes
    ) -> Handle:
        labels = {DEPLOYMENT_LABEL: self._deployment, SANDBOX_LABEL: place.sandbox_id}
        if not spec.in_memory:
            await self._engine.create_volume(place.workspace_volume, options, labels)
        body = create_body(spec, self._facts, image, place)
        markers = await self._host.run(
            "markers", HOST_CALL_S, lambda: read_markers(self._engine.url, self._facts.engine_id)
        )
        container = await self._engine.create(body, place.container_name)
        attestation = self._with_workspace(spec, attest(body, await self._engine.inspect(container)))
        handle = Handle(
            id=place.sandbox_id,
            spec=spec,
            container=container,
            key=key.hex(),
            volume=place.workspace_volume,
            markers=markers,
            made_at=time.time(),
            interpreter=place.interpreter[0],
            attestation=attestation,
        )
        if not spec.in_memory:
            await self._host.run("handle", HOST_CALL_S, lambda: self._handles.write(handle))
        return handle

    def _with_workspace(self, spec: SandboxSpec, attestation: dict[str, Any]) -> dict[str, Any]:
        if spec.in_memory:
            return {**attestation, "workspace": "memory", "soft_quota": False}
        return {**attestation, "workspace": self._store.kind, "soft_quota": self._store.soft}

    async def _interpreter(self, spec: SandboxSpec, image: ImageFacts) -> str:
        """Return the launcher's Python: the kit's where there is one, as an environment's may be of any age."""
        kit = await self._images.kit(spec.kit) if spec.kit else KitFacts()
        if spec.kit and image.musl and not kit.any_library:
            raise SandboxRefused("kit_needs_glibc", _NEEDS_GLIBC)
        found = kit.interpreter or image.interpreter
        if found is None:
            raise SandboxRefused("no_interpreter", "neither the environment nor the kit has a Python for the launcher")
        return found


def new_sandbox_id() -> str:
    return new_id("sbx")

"""The Docker engine of this host as a sandbox engine."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.sandboxes.contract import SandboxBackend, SandboxRefused, SandboxSpec
from service.sandboxes.docker.calls import CallPool
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import HostFacts, words
from service.sandboxes.docker.handles import Handle, Handles
from service.sandboxes.docker.images import Images
from service.sandboxes.docker.kits import Kits
from service.sandboxes.docker.link import LauncherLink
from service.sandboxes.docker.maker import Maker, new_sandbox_id
from service.sandboxes.docker.sandbox import DockerSandbox
from service.sandboxes.docker.selftest import RuntimeCheck, check_runtime
from service.sandboxes.docker.traces import Traces
from service.sandboxes.docker.trust import untrusted_runtimes
from service.sandboxes.docker.workspace import WorkspaceStore, probe

RUNTIMES = ("runc", "runsc-planted")
HOST_THREADS = 8
PROBE_S = 60.0
RETRY_S = 30.0
"""How long a failed self-test holds: an engine that was busy once must not cost a host its runtimes for ever."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is known only after the engine and the host were asked."""

    store: WorkspaceStore
    traces: Traces
    maker: Maker
    runtimes: tuple[str, ...]


class DockerBackend(SandboxBackend):
    """``images`` maps shipped names to a tag or id; ``check_image`` is the environment of the runtimes' self-test."""

    def __init__(
        self,
        data_dir: Path,
        deployment_id: str,
        docker_url: str | None = None,
        images: Mapping[str, str] | None = None,
        *,
        runtimes: Sequence[str] = RUNTIMES,
        check_image: str = "base",
    ) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,40}", deployment_id):
            raise ValueError(f"not a deployment id: {deployment_id!r}")
        self.engine = Engine(docker_url)
        self.images = Images(self.engine, deployment_id, dict(images or {}))
        self.data_dir = data_dir.resolve()
        self.deployment = deployment_id
        self._wanted = tuple(runtimes)
        self._check_image = check_image
        self._host = CallPool(HOST_THREADS)
        self._handles = Handles(self.data_dir)
        self._open: dict[str, DockerSandbox] = {}
        self._ready_lock = asyncio.Lock()
        self._check_locks = {runtime: asyncio.Lock() for runtime in self._wanted}
        self._attach_lock = asyncio.Lock()
        self._parts: _Parts | None = None
        self._checks: dict[str, RuntimeCheck] = {}
        self._tried_at: dict[str, float] = {}

    @property
    def runtime_checks(self) -> Mapping[str, RuntimeCheck]:
        """What the self-test found per runtime, with reasons: for doctor."""
        return self._checks

    async def workspace_kind(self) -> tuple[str, bool]:
        """Return (back end, whether its quota is soft)."""
        store = (await self._ready()).store
        return store.kind, store.soft

    async def untrusted_runtimes(self) -> Sequence[str]:
        """Return the offered runtimes that may run an untrusted project's work. Raises EngineError."""
        _, soft = await self.workspace_kind()
        versions = await self.engine.version()
        return untrusted_runtimes(await self.offered_runtimes(), versions, soft_quota=soft)

    async def offered_runtimes(self) -> Sequence[str]:
        return [runtime for runtime in self._wanted if (await self.check(runtime)).offered]

    async def check(self, runtime: str) -> RuntimeCheck:
        """Return what the self-test of a runtime says. What passed stays so; what failed is tried again after a while."""
        if runtime not in self._wanted:
            return RuntimeCheck(runtime, offered=False, reason=f"runtime {runtime!r} is not configured here")
        parts = await self._ready()
        async with self._check_locks[runtime]:
            known = self._checks.get(runtime)
            now = asyncio.get_running_loop().time()
            if known is None or (not known.offered and now - self._tried_at[runtime] > RETRY_S):
                self._checks[runtime] = known = await self._try_runtime(parts, runtime)
                self._tried_at[runtime] = asyncio.get_running_loop().time()
            return known

    async def resolve_image(self, name: str) -> str:
        return await self.images.resolve(name)

    async def make(self, spec: SandboxSpec) -> DockerSandbox:
        check = await self.check(spec.runtime)
        if not check.offered:
            raise SandboxRefused("runtime_not_offered", check.reason)
        return await self._make(spec)

    async def attach(self, sandbox_id: str) -> DockerSandbox:
        async with self._attach_lock:
            known = self._open.get(sandbox_id)
            if known is not None:
                return known
            parts = await self._ready()
            handle = self._handles.read(sandbox_id)
            link = LauncherLink(self._handles.home(sandbox_id) / "control", bytes.fromhex(handle.key), may_key=False)
            await link.listen()
            return await self._enter(parts, handle, link)

    async def list_ids(self) -> Sequence[str]:
        return await (await self._ready()).traces.ids()

    async def remove(self, sandbox_id: str) -> None:
        known = self._open.pop(sandbox_id, None)
        if known is not None:
            await known.shut()
        has_volume = known is None or not known.spec.in_memory
        await (await self._ready()).traces.remove(sandbox_id, has_volume=has_volume)

    async def close(self) -> None:
        for sandbox in list(self._open.values()):
            await sandbox.shut()
        self._open.clear()
        self.engine.close()
        self._host.close()

    async def _make(self, spec: SandboxSpec) -> DockerSandbox:
        parts = await self._ready()
        sandbox_id = new_sandbox_id()
        try:
            handle, link = await parts.maker.make(sandbox_id, spec)
            return await self._enter(parts, handle, link)
        except BaseException:
            # Shielded: a caller that gives up must not leave a container behind. What still fails, the reaper finds.
            await asyncio.shield(asyncio.gather(self.remove(sandbox_id), return_exceptions=True))
            raise

    async def _enter(self, parts: _Parts, handle: Handle, link: LauncherLink) -> DockerSandbox:
        sandbox = DockerSandbox(
            handle,
            engine=self.engine,
            host=self._host,
            home=self._handles.home(handle.id),
            store=parts.store,
            link=link,
            forget=self.remove,
        )
        try:
            await sandbox.open()
        except BaseException:
            await sandbox.shut()
            raise
        self._open[handle.id] = sandbox
        return sandbox

    async def _ready(self) -> _Parts:
        async with self._ready_lock:
            if self._parts is None:
                self._parts = await self._assemble()
            return self._parts

    async def _assemble(self) -> _Parts:
        info = await self.engine.info()
        store = await self._host.run("workspace probe", PROBE_S, lambda: probe(self.data_dir))
        kits = Kits(self.engine, self.images, self.data_dir, self.deployment)
        await kits.prune()
        maker = Maker(
            engine=self.engine,
            host=self._host,
            handles=self._handles,
            store=store,
            images=self.images,
            kits=kits,
            facts=HostFacts.of(info),
            deployment=self.deployment,
        )
        traces = Traces(self.engine, self._host, self._handles, store, self.deployment)
        known = words(info.get("Runtimes"))
        return _Parts(store, traces, maker, tuple(r for r in self._wanted if r in known))

    async def _try_runtime(self, parts: _Parts, runtime: str) -> RuntimeCheck:
        if runtime not in parts.runtimes:
            return RuntimeCheck(runtime, offered=False, reason=f"the engine has no runtime {runtime!r}")
        return await check_runtime(self._make, self.images.resolve, self._check_image, runtime)

"""Everything of a sandbox that can be left on a host, found by its names alone, and removed in the right order."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from service.sandboxes.contract import EngineError, SandboxGone
from service.sandboxes.docker import loopdev, mounts
from service.sandboxes.docker.calls import CallPool
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import DEPLOYMENT_LABEL, SANDBOX_LABEL
from service.sandboxes.docker.handles import Handles
from service.sandboxes.docker.workspace import WorkspaceStore

HOST_CALL_S = 60.0
_CONFLICT_TRIES, _CONFLICT_WAIT_S = 40, 0.25
"""Another remover may be at work on the same container: the engine answers 409 until it is gone."""


class Traces:
    def __init__(
        self, engine: Engine, host: CallPool, handles: Handles, store: WorkspaceStore, deployment: str
    ) -> None:
        self._engine = engine
        self._host = host
        self._handles = handles
        self._store = store
        self._deployment = deployment

    def name(self, sandbox_id: str) -> str:
        """Return the name that container and volume share."""
        return f"{self._deployment}-{sandbox_id}"

    async def ids(self) -> list[str]:
        """Return the ids of which a container, volume, loop device, mount or directory is left. Raises EngineError."""
        label = f"{DEPLOYMENT_LABEL}={self._deployment}"
        labelled = [*await self._engine.containers(label), *await self._engine.volumes(label)]
        found = {_sandbox_of(item) for item in labelled}
        found.update(await self._host.run("list", HOST_CALL_S, self._local_ids))
        return sorted(found - {""})

    async def remove(self, sandbox_id: str, *, has_volume: bool = True) -> None:
        """Remove whatever is left of a sandbox. Idempotent; raises EngineError, and can then be repeated.

        An engine that keeps its volume keeps no more than the name: disk and device are given back all the same.
        ``has_volume`` false: it is known to have no workspace on a disk.
        """
        home = self._handles.home(sandbox_id)
        name = self.name(sandbox_id)
        await self._remove_container(name)
        kept = await self._remove_volume(name) if has_volume else None
        if has_volume:
            await self._host.run("release", HOST_CALL_S, lambda: self._store.release(home))
        await self._host.run("forget", HOST_CALL_S, lambda: self._handles.forget(sandbox_id))
        if kept is not None:
            raise kept

    async def _remove_volume(self, name: str) -> EngineError | None:
        """Return why the engine keeps it. After a live restore some count mounts wrongly until their next start."""
        try:
            with suppress(SandboxGone):
                await self._engine.remove_volume(name)
        except EngineError as error:
            return error
        return None

    async def _remove_container(self, name: str) -> None:
        for _ in range(_CONFLICT_TRIES):
            try:
                await self._engine.remove(name)
            except SandboxGone:
                return
            except EngineError as error:
                if error.type != "engine_conflict":
                    raise
            else:
                return
            await asyncio.sleep(_CONFLICT_WAIT_S)
        raise EngineError("remove_failed", f"container {name} is not removed")

    def _local_ids(self) -> set[str]:
        root = self._handles.root
        paths = [*mounts.mounts_below(root), *(backing for _, backing in loopdev.table() if root in backing.parents)]
        below = {path.relative_to(root).parts[0] for path in paths if path != root}
        return {name for name in below if name[0] != "."} | set(self._handles.ids())


def _sandbox_of(item: Mapping[str, Any]) -> str:
    labels: Mapping[str, str] = item.get("Labels") or {}
    return labels.get(SANDBOX_LABEL, "")

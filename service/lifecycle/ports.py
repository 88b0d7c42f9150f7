"""What the lifecycle needs from above or from the side; wiring gives it."""

from typing import Protocol

from service.sandboxes.contract import Sandbox, SandboxBackend, SandboxSpec


class WarmPool(Protocol):
    """Sandboxes made ahead of their run, each used once."""

    async def take(self, spec: SandboxSpec) -> Sandbox | None:
        """Return a ready sandbox that fits ``spec`` exactly, or None at once; either way such ones are made from now on."""
        ...

    def allow(self, memory_bytes: int | None) -> None:
        """Keep within so many bytes of memory limits from now on: runs were promised the rest. Null: no bound."""
        ...

    def ids(self) -> set[str]:
        """Return the sandboxes that the pool has or is making, so that the reaper spares them."""
        ...


class NoWarmPool:
    """Every sandbox is made when it is needed."""

    async def take(self, spec: SandboxSpec) -> Sandbox | None:
        del spec
        return None

    def allow(self, memory_bytes: int | None) -> None:
        del memory_bytes

    def ids(self) -> set[str]:
        return set()


class Sandboxes:
    """Handles that this process holds, so that the steps of one run share one connection to its sandbox."""

    def __init__(self, backend: SandboxBackend) -> None:
        self.backend = backend
        self._held: dict[str, Sandbox] = {}

    def hold(self, sandbox: Sandbox) -> None:
        self._held[sandbox.id] = sandbox

    async def open(self, sandbox_id: str) -> Sandbox:
        """Return the held handle, or attach. Raises SandboxGone, EngineError."""
        held = self._held.get(sandbox_id)
        if held is None:
            held = self._held.setdefault(sandbox_id, await self.backend.attach(sandbox_id))
        return held

    def release(self, sandbox_id: str) -> None:
        self._held.pop(sandbox_id, None)

    def held(self) -> list[Sandbox]:
        return list(self._held.values())

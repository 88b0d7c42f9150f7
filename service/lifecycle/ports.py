"""What the lifecycle needs from above or from the side; wiring gives it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from service.domain.errors import Unavailable
from service.domain.grants import Grant
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


Plant = Callable[[int], Awaitable[socket.socket]]
"""Return a listener on 127.0.0.1:port inside the sandbox. Raises SandboxError."""


@dataclass(frozen=True, slots=True)
class GateState:
    """What the gateway knows of an attempt: the host's side of the story."""

    requests: int = 0
    last_request_ago_s: float | None = None
    """Since the last byte of a model request moved; null: there was none."""
    open_requests: int = 0
    provider_wait_s: float = 0.0
    budget_exhausted: bool = False
    """A request was refused because the run's budget is spent: the run ends."""
    provider_failed: bool = False
    """The last request failed on the provider's side after all retries, or its patience is over: the attempt ends."""


class ModelAccess(Protocol):
    """The gateway as the worker sees it. A gateway that is away is waited for; listeners are planted again for it."""

    @property
    def local_socket(self) -> str:
        """Path of the Unix socket on which our own loops reach it."""
        ...

    def service_token(self) -> str:
        """Return what opens that socket for our own processes; empty where there is none."""
        ...

    async def open(self, grant: Grant, plant: Plant | None) -> None:
        """Serve the attempt: plant its listeners (port 80; 81 too where the network policy has a proxy) and hand them
        over. Without ``plant`` only the local side is opened, for our own loops and remote drivers. A repeat renews
        fence and deadline. Raises Unavailable when the gateway does not answer, SandboxError."""
        ...

    async def close(self, run_id: str, attempt: int) -> None:
        """From now on the attempt's token opens nothing and its connections are cut. Idempotent, best effort."""
        ...

    async def state(self, run_id: str, attempt: int) -> GateState:
        """Return what is known now; a default one if the gateway does not answer."""
        ...

    async def ended(self, run_id: str, attempt: int) -> GateState:
        """Return once the budget is exhausted or the provider has failed for good; else never."""
        ...


class NoModels:
    """A deployment without a gateway: runs that need a model are not taken."""

    local_socket = ""

    def service_token(self) -> str:
        return ""

    async def open(self, grant: Grant, plant: Plant | None) -> None:
        del plant
        raise Unavailable("gateway_unavailable", f"{grant.run_id} needs the model gateway, and there is none")

    async def close(self, run_id: str, attempt: int) -> None:
        del run_id, attempt

    async def state(self, run_id: str, attempt: int) -> GateState:
        del run_id, attempt
        return GateState()

    async def ended(self, run_id: str, attempt: int) -> GateState:
        del run_id, attempt
        await asyncio.Event().wait()
        raise AssertionError


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

    def find(self, sandbox_id: str) -> Sandbox | None:
        """Return the held handle; null where this process holds none. Never attaches."""
        return self._held.get(sandbox_id)

    def release(self, sandbox_id: str) -> None:
        self._held.pop(sandbox_id, None)

    def held(self) -> list[Sandbox]:
        return list(self._held.values())

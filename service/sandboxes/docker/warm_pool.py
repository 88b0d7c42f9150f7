"""Sandboxes made ahead of need, so that a run starts without waiting for the engine.

A sandbox is made for a spec's key (image, kit, sizes, runtime) and serves one run. The pool learns the keys from what
is asked for: after a ``take`` it refills that key in the background, one sandbox at a time, so that a busy host is
not slowed by its own foresight. Bounded per key, over all, and in age.
"""

import asyncio
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from service.domain.run_states import ContainerState
from service.sandboxes.contract import Sandbox, SandboxBackend, SandboxError, SandboxSpec

RETRY_S = 5.0
"""Pause after a refill that failed."""
SWEEP_S = 5.0
REFILL_AFTER_S = 0.5
"""Pause after a take, so that making the next does not slow the run that has just begun."""


@dataclass(frozen=True, slots=True)
class _Ready:
    sandbox: Sandbox
    made_at: float


@dataclass(slots=True)
class _Shelf:
    spec: SandboxSpec
    ready: deque[_Ready] = field(default_factory=deque[_Ready])


class WarmPool:
    """``per_key`` ready sandboxes for each of the recently used keys, ``total`` in all, none older than ``ttl_s``."""

    def __init__(self, backend: SandboxBackend, *, per_key: int = 1, total: int = 4, ttl_s: float = 900) -> None:
        self._backend = backend
        self._per_key = min(per_key, total)
        self._total = total
        self._ttl_s = ttl_s
        self._shelves: OrderedDict[str, _Shelf] = OrderedDict()
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._taken_at = 0.0
        self._allowed_bytes: int | None = None

    @property
    def size(self) -> int:
        return sum(len(shelf.ready) for shelf in self._shelves.values())

    @property
    def memory_bytes(self) -> int:
        """Limits of what waits, in all."""
        return sum(len(shelf.ready) * shelf.spec.limits.memory_bytes for shelf in self._shelves.values())

    def allow(self, memory_bytes: int | None) -> None:
        """Keep within so many bytes of memory limits, from now on: what runs were promised is theirs. Null: no bound."""
        self._allowed_bytes = memory_bytes
        self._wanted.set()

    def ids(self) -> set[str]:
        """Return the ids of waiting sandboxes: the reaper must not take them for leftovers."""
        return {r.sandbox.id for shelf in self._shelves.values() for r in shelf.ready}

    async def take(self, spec: SandboxSpec) -> Sandbox | None:
        """Return a live sandbox that fits ``spec``, now the caller's, or null. Never waits for one to be made."""
        self._taken_at = time.monotonic()
        self.expect(spec)
        shelf = self._shelves[spec.key()]
        for _ in range(len(shelf.ready)):
            if not shelf.ready:  # another caller was quicker
                break
            sandbox = shelf.ready.popleft().sandbox
            self._wanted.set()
            if await self._alive(sandbox):
                return sandbox
            await self._drop(sandbox)
        return None

    def expect(self, spec: SandboxSpec) -> None:
        """Note that sandboxes of this spec are used, and refill in the background."""
        self._shelves.setdefault(spec.key(), _Shelf(spec))
        if self._closed or self._per_key < 1:
            return
        self._shelves.move_to_end(spec.key())
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep(), name="warm sandboxes")

    async def forget(self, image_id: str) -> None:
        """Destroy what waits in an image that is about to be removed, and make no more of it."""
        for key, shelf in list(self._shelves.items()):
            if image_id in (shelf.spec.environment, shelf.spec.kit):
                del self._shelves[key]
                await asyncio.gather(*(self._drop(r.sandbox) for r in shelf.ready))

    async def close(self) -> None:
        """Stop refilling and destroy what waits. Raises nothing of the sandbox's world: the reaper finds the rest."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(self._drop(r.sandbox) for s in self._shelves.values() for r in s.ready))
        self._shelves.clear()

    async def _keep(self) -> None:
        while True:
            await self._discard_surplus()
            shelf = self._next_to_fill()
            if shelf is None:
                await self._pause()
                continue
            if (wait_s := self._taken_at + REFILL_AFTER_S - time.monotonic()) > 0:
                await asyncio.sleep(wait_s)
            try:
                sandbox = await self._backend.make(shelf.spec)
            except SandboxError:
                await asyncio.sleep(RETRY_S)
                continue
            if self._shelves.get(shelf.spec.key()) is shelf:
                shelf.ready.append(_Ready(sandbox, time.monotonic()))
            else:  # forgotten meanwhile
                await self._drop(sandbox)

    async def _pause(self) -> None:
        self._wanted.clear()
        try:
            async with asyncio.timeout(SWEEP_S):
                await self._wanted.wait()
        except TimeoutError:
            return

    def _next_to_fill(self) -> _Shelf | None:
        """Return the most recently used shelf with room, while the whole has room (or an older shelf can give)."""
        recent = list(reversed(self._shelves.values()))[: max(1, self._total // self._per_key)]
        return next((s for s in recent if len(s.ready) < self._per_key and self._affords(s.spec)), None)

    def _affords(self, spec: SandboxSpec) -> bool:
        return self._allowed_bytes is None or self.memory_bytes + spec.limits.memory_bytes <= self._allowed_bytes

    async def _discard_surplus(self) -> None:
        """Destroy what is too old, and what belongs to keys that are not used recently."""
        keep = max(1, self._total // self._per_key)
        oldest = time.monotonic() - self._ttl_s
        for number, (key, shelf) in enumerate(reversed(list(self._shelves.items()))):
            stale = [r for r in shelf.ready if number >= keep or r.made_at < oldest]
            for ready in stale:
                if ready in shelf.ready:
                    shelf.ready.remove(ready)
                    await self._drop(ready.sandbox)
            if number >= keep and not shelf.ready:
                del self._shelves[key]
        while self._allowed_bytes is not None and self.memory_bytes > self._allowed_bytes:
            least_used = next(shelf for shelf in self._shelves.values() if shelf.ready)
            await self._drop(least_used.ready.popleft().sandbox)

    async def _alive(self, sandbox: Sandbox) -> bool:
        try:
            return (await sandbox.inspect()).state is ContainerState.RUNNING
        except SandboxError:
            return False

    async def _drop(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.destroy()
        except SandboxError:  # its labels stay: the reaper removes it when the engine answers again
            return

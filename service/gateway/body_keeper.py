"""Keeps the bodies of runs' requests in the content store, within what one run may take."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from service.store.blobs import BlobStore
from service.store.request_bodies import MOST_KEPT, Base, pack, usable

_BASES = 256
_BASE_BYTES = 64 << 20
_RUNS = 4096


@dataclass(frozen=True, slots=True)
class BodyLimits:
    body_bytes: int = 8 << 20
    """Of one body; what is longer is kept up to here, and marked."""
    run_bytes: int = 256 << 20
    """Compressed bytes that one gateway process keeps of one run; from then on none of its bodies are kept."""

    def __post_init__(self) -> None:
        if self.body_bytes > MOST_KEPT:
            raise ValueError(f"at most {MOST_KEPT} bytes of one body can be kept")


@dataclass(frozen=True, slots=True)
class Kept:
    request: str | None = None
    """Digest of the blob."""
    response: str | None = None
    blobs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Digest → bytes: what the owner needs refs to, predecessors among them."""


class BodyKeeper:
    def __init__(self, blobs: BlobStore, limits: BodyLimits | None = None) -> None:
        self.limits = limits or BodyLimits()
        self._blobs = blobs
        self._bases: OrderedDict[tuple[str, str], Base] = OrderedDict()
        self._base_bytes = 0
        self._taken: OrderedDict[str, int] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        # Its own threads: the loop's look up names, and a slow disk must not keep requests waiting.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="bodies")

    async def keep(self, owner: str, thread: str, request: bytes, response: bytes, response_size: int) -> Kept:
        """Keep a request and its answer, redacted by the caller; ``thread`` tells an owner's conversations apart.

        ``response`` may be the beginning of ``response_size`` bytes. Nothing is kept past the owner's limit.
        Raises Unavailable("storage_full"), OSError.
        """
        lock = self._locks.setdefault(owner, asyncio.Lock())
        try:
            async with lock:
                return await self._keep(owner, (owner, thread), request, response, response_size)
        finally:
            if not lock.locked():
                self._locks.pop(owner, None)

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def forget(self, owner: str) -> None:
        """The run has ended: its conversations go on no more."""
        for key in [key for key in self._bases if key[0] == owner]:
            self._base_bytes -= len(self._bases.pop(key).data)

    async def _keep(self, owner: str, key: tuple[str, str], request: bytes, response: bytes, size: int) -> Kept:
        if self._taken.get(owner, 0) >= self.limits.run_bytes:
            return Kept()
        base = usable(self._bases.get(key))
        work = (request, base, response, size)
        sent, answer = await asyncio.get_running_loop().run_in_executor(self._threads, self._store, *work)
        chain = {**(base.chain if base is not None else {}), sent[0]: sent[1]}
        self._count(owner, sent[1] + answer[1])
        self._remember(key, Base(sent[0], request[: self.limits.body_bytes], chain))
        return Kept(sent[0], answer[0], {**chain, answer[0]: answer[1]})

    def _store(self, request: bytes, base: Base | None, response: bytes, size: int) -> list[tuple[str, int]]:
        most = self.limits.body_bytes
        packed = [pack(request[:most], len(request), base), pack(response[:most], size)]
        named = [(hashlib.sha256(data).hexdigest(), data) for data in packed]
        self._blobs.store_many(dict(named))
        return [(sha, len(data)) for sha, data in named]

    def _count(self, owner: str, stored: int) -> None:
        self._taken[owner] = self._taken.pop(owner, 0) + stored
        while len(self._taken) > _RUNS:
            self._taken.popitem(last=False)

    def _remember(self, key: tuple[str, str], base: Base) -> None:
        before = self._bases.pop(key, None)
        self._base_bytes += len(base.data) - (len(before.data) if before else 0)
        self._bases[key] = base
        while len(self._bases) > _BASES or (self._base_bytes > _BASE_BYTES and len(self._bases) > 1):
            self._base_bytes -= len(self._bases.popitem(last=False)[1].data)

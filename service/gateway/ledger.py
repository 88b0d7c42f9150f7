"""Requests into the ledger: a row before anything leaves, and its settlement, which is never given up."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import structlog

from service.domain.errors import Unavailable
from service.gateway.body_keeper import Kept
from service.lifecycle.clock import Clock
from service.store import model_requests, service_calls
from service.store.database import Database, Tx, retrying
from service.store.rows_requests import CallEnd, NewCall, NewRequest, Settlement, Spent

SETTLERS = 4
"""Settlements written at once: the rest of the pool's connections are for requests that begin."""
FLUSH_S = 5.0
UNTOLD_S = 0.25
"""A request that ends within it costs its run one transaction instead of two."""
DIED = "gateway_died"
Keeping = Callable[[], Awaitable[Kept]]
"""Keep the bodies of a request. Raises Unavailable, OSError."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Ledger:
    """Memory is bounded by what is under way: while the database is away, nothing new can begin."""

    def __init__(self, db: Database, gateway_id: str, clock: Clock | None = None) -> None:
        self._db = db
        self.gateway_id = gateway_id
        self._clock = clock or Clock()
        self._places = asyncio.Semaphore(SETTLERS)
        self._open: dict[asyncio.Task[None], str | None] = {}
        self._announcing: dict[str, tuple[asyncio.Task[None], datetime]] = {}
        """Request → what will tell its run of it, when it began."""

    async def begin(self, new: NewRequest) -> None:
        """Write the request down. Raises Unavailable, Gone (the attempt is over), NotFound.

        The run's log and counters hear of it when it has lasted a moment, else when it is settled.
        """
        async with self._db.statement() as tx:
            await model_requests.begin(tx, new)
        if new.run_id is not None:
            ts = self._clock.now()
            task = asyncio.create_task(self._announce(new.id, ts), name=f"announce {new.id}")
            self._announcing[new.id] = task, ts
            task.add_done_callback(lambda _: self._announcing.pop(new.id, None))
            self._keep(task, new.run_id)

    async def spent(self, run_id: str) -> Spent:
        async with self._db.reading() as tx:
            asked = await model_requests.spent(tx, run_id)
            _, usd = await service_calls.spent(tx, run_id)
        return replace(asked, usd=asked.usd + usd)

    async def begin_call(self, new: NewCall) -> None:
        """As :meth:`begin`, for a call to a service."""
        async with self._db.transaction() as tx:
            await service_calls.begin(tx, new)

    def settle_call(self, new: NewCall, end: CallEnd, keeping: Keeping | None = None) -> None:
        """As :meth:`settle`, for a call to a service."""
        self._keep(
            asyncio.create_task(self._keep_and_settle_call(new.id, end, keeping), name=f"settle {new.id}"), new.run_id
        )

    def settle(self, new: NewRequest, end: Settlement, keeping: Keeping | None = None) -> None:
        """Have the end written, in the background, as soon as the database takes it; first what ``keeping`` keeps."""
        begun_at = None
        if new.id in self._announcing:
            task, begun_at = self._announcing.pop(new.id)
            task.cancel()
        if new.run_id is None:
            writing = self._keep_and_settle_alone(new.id, end, keeping)
        else:
            writing = self._keep_and_settle(new.id, end, keeping, begun_at)
        self._keep(asyncio.create_task(writing, name=f"settle {new.id}"), new.run_id)

    async def flush(self, run_id: str | None = None, timeout_s: float = FLUSH_S) -> None:
        """Wait for the settlements of a run (of all), at most ``timeout_s`` seconds."""
        mine = [task for task, owner in self._open.items() if run_id is None or owner == run_id]
        if mine:
            await asyncio.wait(mine, timeout=timeout_s)

    async def recover(self) -> int:
        """Settle what a gateway of this name left behind: nobody knows how it went. Returns how many there were."""
        count = 0
        while True:
            async with self._db.reading() as tx:
                left = await model_requests.open_of_gateway(tx, self.gateway_id)
                calls = await service_calls.open_of_gateway(tx, self.gateway_id)
            for request_id in left:
                await self._settle(request_id, Settlement(None, error=DIED))
            for call_id in calls:
                await self._settle_call(call_id, CallEnd(None, error=DIED))
            count += len(left) + len(calls)
            if not left and not calls:
                return count

    def _keep(self, task: "asyncio.Task[None]", run_id: str | None) -> None:
        self._open[task] = run_id
        task.add_done_callback(lambda done: self._open.pop(done, None))

    async def _announce(self, request_id: str, ts: datetime) -> None:
        await asyncio.sleep(UNTOLD_S)

        async def write(tx: Tx) -> None:
            await model_requests.announce(tx, request_id, ts)

        await self._until_written(request_id, write)

    async def _keep_and_settle(
        self, request_id: str, end: Settlement, keeping: Keeping | None, begun_at: datetime | None
    ) -> None:
        kept = await _kept(request_id, keeping)
        end = replace(end, request_blob=kept.request, response_blob=kept.response, blobs=kept.blobs)
        await self._settle(request_id, end, begun_at)

    async def _keep_and_settle_alone(self, request_id: str, end: Settlement, keeping: Keeping | None) -> None:
        """Of a request that belongs to no run."""
        kept = await _kept(request_id, keeping)
        end = replace(end, request_blob=kept.request, response_blob=kept.response, blobs=kept.blobs)

        async def write() -> None:
            async with self._db.statement() as tx:
                await model_requests.settle_of_no_run(tx, request_id, end)

        await self._until_done(request_id, write)

    async def _keep_and_settle_call(self, call_id: str, end: CallEnd, keeping: Keeping | None) -> None:
        kept = await _kept(call_id, keeping)
        end = replace(end, request_blob=kept.request, response_blob=kept.response, blobs=kept.blobs)
        await self._settle_call(call_id, end)

    async def _settle(self, request_id: str, end: Settlement, begun_at: datetime | None = None) -> None:
        ts = self._clock.now()

        async def write(tx: Tx) -> None:
            await model_requests.settle(tx, request_id, end, ts, begun_at)

        await self._until_written(request_id, write)

    async def _settle_call(self, call_id: str, end: CallEnd) -> None:
        ts = self._clock.now()

        async def write(tx: Tx) -> None:
            await service_calls.settle(tx, call_id, end, ts)

        await self._until_written(call_id, write)

    async def _until_written(self, id_: str, write: Callable[[Tx], Awaitable[None]]) -> None:
        await self._until_done(id_, lambda: retrying(self._db, write))

    async def _until_done(self, id_: str, write: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                async with self._places:
                    await write()
                    return
            except Unavailable as error:
                log.warning("settlement_waits", request=id_, why=error.type)
                await asyncio.sleep(1 + secrets.randbelow(1000) / 1000)


async def _kept(id_: str, keeping: Keeping | None) -> Kept:
    """Keep the bodies if there are any; what cannot be kept is lost."""
    try:
        return Kept() if keeping is None else await keeping()
    except (Unavailable, OSError) as error:
        log.warning("bodies_not_kept", request=id_, why=str(error))
        return Kept()

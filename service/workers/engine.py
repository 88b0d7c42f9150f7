"""Background jobs on DBOS: the only module that knows it.

A job is a key (a grading's id, say) in a queue, whose handler is a coroutine of ours; both bear repetition. Rows of the
application say which keys are open; :meth:`JobEngine.ensure` sees to it that each has exactly one living workflow. To DBOS all our
queues are partitions of one, as each of its queues asks the database all the time. DBOS does not
notice dead executors, so each process holds a database lock named after its executor id: whoever finds a workflow whose
lock is free closes it and queues the next one, ``<key>:<n>``. Two processes that do so at once name the same workflow.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID, WorkflowStatus

from service.domain.errors import Conflict, Unavailable
from service.domain.ids import new_id
from service.store import clock
from service.store.database import Database

APPLICATION_VERSION = "workstead-1"
"""Stated, because DBOS's own default changes with every edit and strands what was queued before."""
_QUEUE = "jobs"
_WAITING = frozenset({"ENQUEUED", "DELAYED"})
_RUNNING = "PENDING"
_OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
KEPT = timedelta(days=7)
"""How long a workflow that has ended stays for whoever looks into DBOS; nothing of ours reads it."""
_KEYS_PER_QUERY = 100
_FORGOTTEN_AT_ONCE = 500
_CONNECTIONS = 16

Handler = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    concurrency: int
    """Jobs at once in this process."""
    handler: Handler


@dataclass(frozen=True, slots=True)
class EngineConfig:
    poll_s: float = 1.0
    drain_s: int = 5
    """For running jobs to end when the engine is closed; what does not is taken up again by the next process."""


class JobEngine:
    """One per process, for all of its queues; made by :func:`job_engine`."""

    def __init__(self, db: Database, queues: Sequence[Queue], config: EngineConfig, executor_id: str) -> None:
        self._db = db
        self._queues = {queue.name: queue for queue in queues}
        self._config = config
        self._executor_id = executor_id
        self._slots = {queue.name: asyncio.Semaphore(queue.concurrency) for queue in queues}
        self._workflows: dict[str, Callable[[str], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._closing = threading.Event()

    async def ensure(self, queue: str, keys: Sequence[str]) -> int:
        """Queue a workflow for each key that has no living one; return how many were queued. Raises Unavailable.

        A key is of one queue, always.
        """
        queued = 0
        alive: dict[str, bool] = {self._executor_id: True}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            found = await asyncio.to_thread(_workflows_of, some)
            for key in some:
                queued += await self._ensure_one(queue, key, found[key], alive)
        return queued

    async def _ensure_one(self, queue: str, key: str, found: list[WorkflowStatus], alive: dict[str, bool]) -> bool:
        for status in found:
            if status.status == _RUNNING:
                executor = status.executor_id or ""
                if executor not in alive:
                    alive[executor] = await self._is_alive(executor)
                if alive[executor]:
                    return False
            elif status.status in _WAITING:
                if status.queue_name == _QUEUE:
                    return False
            else:
                continue
            await asyncio.to_thread(DBOS.cancel_workflow, status.workflow_id)
        await asyncio.to_thread(self._enqueue, queue, f"{key}:{_next_number(found)}", key)
        return True

    async def forget(self, older_than: timedelta = KEPT) -> int:
        """Delete what DBOS keeps of jobs that were queued longer ago and have ended; return how many. Raises Unavailable."""
        async with self._db.reading() as tx:
            before = await clock.now(tx) - older_than
        forgotten = 0
        while not self._closing.is_set():
            some = await asyncio.to_thread(_delete_ended, before.isoformat())
            forgotten += some
            if some < _FORGOTTEN_AT_ONCE:
                break
        return forgotten

    async def _is_alive(self, executor_id: str) -> bool:
        try:
            async with self._db.session_lock(_lock_name(executor_id), wait_s=0.001):
                return False
        except Conflict:
            return True

    def _enqueue(self, queue: str, workflow_id: str, key: str) -> None:
        with SetWorkflowID(workflow_id), SetEnqueueOptions(queue_partition_key=queue):
            DBOS.enqueue_workflow(_QUEUE, self._workflows[queue], key)

    def launch(self) -> None:
        """Start DBOS in this process. Blocks while it migrates its own schema."""
        # The same for all partitions; each queue's own bound is kept by its slots, and none takes another's room.
        most = max(queue.concurrency for queue in self._queues.values())
        room = most * len(self._queues)
        config: DBOSConfig = {
            "name": "workstead",
            "system_database_url": self._db.url,
            "sys_db_pool_size": min(room, _CONNECTIONS) + 4,  # a job that waits for its handler holds none
            "application_version": APPLICATION_VERSION,
            "executor_id": self._executor_id,
            "log_level": "ERROR",
            "enable_otlp": False,
            "scheduler_polling_interval_sec": 3600.0,
        }
        DBOS(config=config)

        for queue in self._queues.values():
            self._workflows[queue.name] = self._workflow(queue)
        DBOS.listen_queues([_QUEUE])
        DBOS.launch()
        DBOS.register_queue(
            _QUEUE,
            worker_concurrency=room,
            partition_worker_concurrency=most,
            polling_interval_sec=self._config.poll_s,
            on_conflict="always_update",
        )

    def _workflow(self, queue: Queue) -> Callable[[str], None]:
        def job(key: str) -> None:
            self._run(queue, key)

        return DBOS.workflow(name=f"job_{queue.name}")(job)

    def close(self) -> None:
        """Stop taking jobs, give running ones a few seconds, leave. Blocks."""
        self._closing.set()
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=self._config.drain_s)

    def _run(self, queue: Queue, key: str) -> None:
        """Workflow body, in a thread of DBOS; the job itself runs on our event loop, where its connections live."""
        job = asyncio.run_coroutine_threadsafe(self._call(queue, key), self._loop)
        try:
            job.result()
        except CancelledError:
            raise RuntimeError("the process ends; the next one takes the job up") from None

    async def _call(self, queue: Queue, key: str) -> None:
        async with self._slots[queue.name]:
            await queue.handler(key)


def _workflows_of(keys: Sequence[str]) -> dict[str, list[WorkflowStatus]]:
    found: dict[str, list[WorkflowStatus]] = defaultdict(list)
    rows = DBOS.list_workflows(workflow_id_prefix=[f"{k}:" for k in keys], load_input=False, load_output=False)
    for status in rows:
        found[status.workflow_id.rpartition(":")[0]].append(status)
    return found


def _next_number(found: Sequence[WorkflowStatus]) -> int:
    """Return the number that no workflow of the key has had: earlier ones may have been forgotten."""
    return max((int(status.workflow_id.rpartition(":")[2]) + 1 for status in found), default=0)


def _delete_ended(before: str) -> int:
    rows = DBOS.list_workflows(
        status=_OVER, end_time=before, limit=_FORGOTTEN_AT_ONCE, load_input=False, load_output=False
    )
    if rows:
        DBOS.delete_workflows([status.workflow_id for status in rows])
    return len(rows)


def _lock_name(executor_id: str) -> str:
    return f"workstead.jobs.{executor_id}"


@asynccontextmanager
async def job_engine(db: Database, queues: Sequence[Queue], config: EngineConfig) -> AsyncGenerator[JobEngine]:
    """Run an engine for the length of the block, under a fresh executor id. Raises Unavailable."""
    executor_id = new_id("exe")
    async with db.session_lock(_lock_name(executor_id)) as lost:
        engine = JobEngine(db, queues, config, executor_id)
        await asyncio.to_thread(engine.launch)
        guard = asyncio.create_task(_keep_lock(db, executor_id, lost))
        try:
            yield engine
        finally:
            guard.cancel()
            await asyncio.gather(guard, return_exceptions=True)
            await asyncio.to_thread(engine.close)


async def _keep_lock(db: Database, executor_id: str, lost: asyncio.Event) -> None:
    """Hold the lock again after the database was away; in between a job may be started twice, which is harmless."""
    while True:
        await lost.wait()
        try:
            async with db.session_lock(_lock_name(executor_id), wait_s=1.0) as lost_again:
                await lost_again.wait()
        except (Unavailable, Conflict):
            await asyncio.sleep(1.0)

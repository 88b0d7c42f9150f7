"""Background jobs on DBOS: the only module that knows it.

A job is a key (a grading's id, say) and a coroutine of ours that does it; both bear repetition. Rows of the application
say which keys are open; :meth:`JobEngine.ensure` sees to it that each has exactly one living workflow. DBOS does not
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

from dbos import DBOS, DBOSConfig, SetWorkflowID, WorkflowStatus

from service.domain.errors import Conflict, Unavailable
from service.domain.ids import new_id
from service.store.database import Database

APPLICATION_VERSION = "workstead-1"
"""Stated, because DBOS's own default changes with every edit and strands what was queued before."""
_WAITING = frozenset({"ENQUEUED", "DELAYED"})
_RUNNING = "PENDING"
_KEYS_PER_QUERY = 100

Handler = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    queue: str
    concurrency: int
    """Jobs at once in this process."""
    poll_s: float = 1.0
    drain_s: int = 5
    """For running jobs to end when the engine is closed; what does not is taken up again by the next process."""


class JobEngine:
    """One per process and queue; made by :func:`job_engine`."""

    def __init__(self, db: Database, config: EngineConfig, handler: Handler, executor_id: str) -> None:
        self._db = db
        self._config = config
        self._handler = handler
        self._executor_id = executor_id
        self._loop = asyncio.get_running_loop()
        self._closing = threading.Event()

    async def ensure(self, keys: Sequence[str]) -> int:
        """Queue a workflow for each key that has no living one; return how many were queued. Raises Unavailable."""
        queued = 0
        alive: dict[str, bool] = {self._executor_id: True}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            found = await asyncio.to_thread(_workflows, some)
            for key in some:
                queued += await self._ensure_one(key, found[key], alive)
        return queued

    async def _ensure_one(self, key: str, found: list[WorkflowStatus], alive: dict[str, bool]) -> bool:
        for status in found:
            if status.status in _WAITING:
                return False
            if status.status == _RUNNING:
                executor = status.executor_id or ""
                if executor not in alive:
                    alive[executor] = await self._is_alive(executor)
                if alive[executor]:
                    return False
                await asyncio.to_thread(DBOS.cancel_workflow, status.workflow_id)
        await asyncio.to_thread(self._enqueue, f"{key}:{len(found)}", key)
        return True

    async def _is_alive(self, executor_id: str) -> bool:
        try:
            async with self._db.session_lock(_lock_name(executor_id), wait_s=0.001):
                return False
        except Conflict:
            return True

    def _enqueue(self, workflow_id: str, key: str) -> None:
        with SetWorkflowID(workflow_id):
            DBOS.enqueue_workflow(self._config.queue, self.workflow, key)

    def launch(self) -> None:
        """Start DBOS in this process. Blocks while it migrates its own schema."""
        config: DBOSConfig = {
            "name": "workstead",
            "system_database_url": self._db.url,
            "sys_db_pool_size": self._config.concurrency + 4,
            "application_version": APPLICATION_VERSION,
            "executor_id": self._executor_id,
            "log_level": "ERROR",
            "enable_otlp": False,
            "scheduler_polling_interval_sec": 3600.0,
        }
        DBOS(config=config)

        def job(key: str) -> None:
            self._run(key)

        self.workflow = DBOS.workflow(name=f"job_{self._config.queue}")(job)
        DBOS.listen_queues([self._config.queue])
        DBOS.launch()
        DBOS.register_queue(
            self._config.queue,
            worker_concurrency=self._config.concurrency,
            polling_interval_sec=self._config.poll_s,
            on_conflict="always_update",
        )

    def close(self) -> None:
        """Stop taking jobs, give running ones a few seconds, leave. Blocks."""
        self._closing.set()
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=self._config.drain_s)

    def _run(self, key: str) -> None:
        """Workflow body, in a thread of DBOS; the job itself runs on our event loop, where its connections live."""
        job = asyncio.run_coroutine_threadsafe(_call(self._handler, key), self._loop)
        try:
            job.result()
        except CancelledError:
            raise RuntimeError("the process ends; the next one takes the job up") from None


async def _call(handler: Handler, key: str) -> None:
    await handler(key)


def _workflows(keys: Sequence[str]) -> dict[str, list[WorkflowStatus]]:
    found: dict[str, list[WorkflowStatus]] = defaultdict(list)
    rows = DBOS.list_workflows(workflow_id_prefix=[f"{k}:" for k in keys], load_input=False, load_output=False)
    for status in rows:
        found[status.workflow_id.rpartition(":")[0]].append(status)
    return found


def _lock_name(executor_id: str) -> str:
    return f"workstead.jobs.{executor_id}"


@asynccontextmanager
async def job_engine(db: Database, config: EngineConfig, handler: Handler) -> AsyncGenerator[JobEngine]:
    """Run an engine for the length of the block, under a fresh executor id. Raises Unavailable."""
    executor_id = new_id("exe")
    async with db.session_lock(_lock_name(executor_id)) as lost:
        engine = JobEngine(db, config, handler, executor_id)
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

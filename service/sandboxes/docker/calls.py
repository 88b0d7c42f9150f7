"""A bounded pool for blocking engine calls: every call has a deadline, and no thread is leaked without bound.

An engine that hangs keeps the calling thread (a socket read cannot be interrupted from outside). Such a thread is
counted as stuck until it comes back. When every thread is stuck, further calls fail at once instead of queueing.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from service.sandboxes.contract import EngineError

MAX_THREADS = 16
MAX_QUEUED = 512

T = TypeVar("T")


class _Job:
    """One call. ``state`` moves queued → running → done, or queued → abandoned."""

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.started = False
        self.abandoned = False


class CallPool:
    """Daemon threads, so that a stuck one never keeps the process from ending."""

    def __init__(self, threads: int = MAX_THREADS) -> None:
        self._limit = threads
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._stuck = 0
        self._queued = 0
        self._closed = False

    @property
    def stuck(self) -> int:
        """Threads whose call outlived its deadline and has not come back."""
        return self._stuck

    @property
    def threads(self) -> int:
        return self._threads

    async def run(self, what: str, deadline_s: float, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread and return its result; raise EngineError after ``deadline_s`` seconds.

        The deadline covers the wait for a thread. The work of a call given up while queued is never done; one given
        up while running may still take effect in the engine.
        """
        job = _Job(work, asyncio.get_running_loop())
        self._admit(what, job)
        try:
            async with asyncio.timeout(deadline_s):
                return await job.future
        except TimeoutError:
            raise EngineError("engine_timeout", f"{what}: no answer within {deadline_s:g} s") from None
        finally:
            self._settle(job)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            count = self._threads
        for _ in range(count):
            self._jobs.put(None)

    def _admit(self, what: str, job: _Job) -> None:
        with self._lock:
            if self._closed:
                raise EngineError("engine_closed", f"{what}: the engine client is closed")
            if self._stuck >= self._limit:
                raise EngineError("engine_stuck", f"{what}: all {self._limit} engine calls hang")
            if self._queued >= MAX_QUEUED:
                raise EngineError("engine_busy", f"{what}: {MAX_QUEUED} engine calls wait already")
            self._queued += 1
            if self._idle < self._queued and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._serve, name="engine-call", daemon=True).start()
        self._jobs.put(job)

    def _settle(self, job: _Job) -> None:
        """Note a call that its caller gave up; ``_serve`` takes the note back when the call returns."""
        with self._lock:
            if job.future.done() and not job.future.cancelled():
                return
            job.abandoned = True
            if job.started:
                self._stuck += 1

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
                if job is None:
                    self._threads -= 1
                    return
                self._queued -= 1
                job.started = not job.abandoned
            if job.started:
                self._do(job)

    def _do(self, job: _Job) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = job.work()
        except BaseException as exc:  # noqa: BLE001 - carried to the caller, who raises it
            error = exc
        with self._lock:
            if job.abandoned:
                self._stuck -= 1
                return
        try:
            job.loop.call_soon_threadsafe(_resolve, job.future, result, error)
        except RuntimeError:  # the caller's loop is closed: nobody is left to be told
            return


def _resolve(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

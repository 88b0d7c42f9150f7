"""``workstead serve``: database, migrations, children, until a signal says stop."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from service.supervisor.children import ChildSpec, Database, Program
from service.supervisor.cluster import PostgresFailed
from service.supervisor.locks import DataLock, make_data_dir
from service.supervisor.postgres import READY_TIMEOUT_S, EmbeddedPostgres
from service.supervisor.processes import DRAIN_S, Supervisor
from service.supervisor.status import StatusFile

DATABASE_URL_VARIABLE = "WORKSTEAD_DATABASE_URL"


def serve(
    data_dir: Path,
    children: Sequence[ChildSpec],
    migrate: Callable[[str], None],
    database_url: str | None = None,
    on_ready: Callable[[str], None] | None = None,
    *,
    url_variable: str = DATABASE_URL_VARIABLE,
    logs_to_files: bool = True,
    drain_s: float = DRAIN_S,
) -> None:
    """Run the children, in the given order, until SIGTERM, SIGINT or SIGHUP; return when everything has ended.

    Without ``database_url`` the embedded PostgreSQL of ``data_dir`` is started first and stopped last.
    ``migrate`` gets the URL before any child starts, in a thread of its own; each child gets it in the environment
    variable ``url_variable``. ``on_ready`` gets it when all children have been started. Output of children goes to
    ``<data_dir>/log/<name>.log`` (16 MiB, the newest 8 MiB before that in ``.1``) or, without ``logs_to_files``, to
    ours. To be called in the main thread.

    Raises :class:`Conflict` (``data_dir_busy``) when another ``serve`` has the directory, what
    :meth:`EmbeddedPostgres.start` raises, and what ``migrate`` raises; then nothing is left running.
    """
    make_data_dir(data_dir)
    lock = DataLock(data_dir / "serve.lock")
    lock.acquire()
    database = None if database_url else EmbeddedPostgres(data_dir)
    log_dir = data_dir / "log" if logs_to_files else None
    try:
        asyncio.run(
            _Serve(data_dir, database, log_dir, drain_s).run(children, migrate, database_url, url_variable, on_ready)
        )
    finally:
        if database is not None:
            database.stop()
        lock.release()


class _Serve:
    def __init__(self, data_dir: Path, database: EmbeddedPostgres | None, log_dir: Path | None, drain_s: float) -> None:
        self._database = database
        self._log_dir = log_dir
        self._status = StatusFile(data_dir)
        self._supervisor = Supervisor(self._status, drain_s=drain_s)

    async def run(
        self,
        children: Sequence[ChildSpec],
        migrate: Callable[[str], None],
        database_url: str | None,
        url_variable: str,
        on_ready: Callable[[str], None] | None,
    ) -> None:
        self._supervisor.handle_signals()
        self._supervisor.announce()
        try:
            url = database_url or await self._start_database()
            if url is not None:
                await asyncio.to_thread(migrate, url)
                # no thread may be around when children are forked
                await asyncio.get_running_loop().shutdown_default_executor()
                self._start(children, url, url_variable)
                if not self._supervisor.stopping:
                    self._supervisor.announce("ready")
                    if on_ready is not None:
                        on_ready(url)
                await self._supervisor.run()
        finally:
            if self._database is not None:
                self._supervisor.release(Database.name)
            await self._supervisor.drain()
            self._status.remove()

    async def _start_database(self) -> str | None:
        """Return the URL once the server answers; ``None`` when told to stop before."""
        if self._database is None:
            return None
        self._database.launch()  # here, not by the supervisor: what fails the first time is for the operator to see
        if not await self._supervisor.until(self._database.ready, READY_TIMEOUT_S):
            if self._supervisor.stopping:
                return None
            raise PostgresFailed(self._database.why_not_ready(READY_TIMEOUT_S))
        self._supervisor.keep(Database(self._database))
        return self._database.url

    def _start(self, children: Sequence[ChildSpec], url: str, url_variable: str) -> None:
        for spec in children:
            if self._supervisor.stopping:
                return
            log = self._log_dir / f"{spec.name}.log" if self._log_dir else None
            self._supervisor.keep(Program(replace(spec, env={**spec.env, url_variable: url}), log))

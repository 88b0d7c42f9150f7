"""The embedded PostgreSQL: one server per data directory, child of the process that starts it.

Nothing of it outlives that process: the kernel sends the server SIGQUIT when its parent is gone, however it went.
The server keeps what it has committed; it recovers at the next start.
"""

import os
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from service.domain.errors import Unavailable
from service.supervisor import binaries, cluster, leftovers, proc
from service.supervisor.account import Account, require_plain, require_reachable, server_account
from service.supervisor.cluster import Cluster, PostgresFailed
from service.supervisor.locks import DataLock, make_data_dir
from service.supervisor.logs import open_log

DATABASE = "workstead"
READY_TIMEOUT_S = 120.0
_MAX_CONNECTIONS = 200
_FAST_STOP_S = 20.0
_IMMEDIATE_STOP_S = 6.0
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": str(_MAX_CONNECTIONS),
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "jit": "off",
}
_FAST_AND_LOOSE = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}


def default_data_dir() -> Path:
    """Where state lives when no setting says otherwise."""
    return Path("/var/lib/workstead") if os.geteuid() == 0 else Path.home() / ".local/share/workstead"


def default_runtime_dir() -> Path:
    """Where a socket goes when the data directory's path is too long for one."""
    return Path("/run") if os.access("/run", os.W_OK) else Path("/tmp")  # noqa: S108  # mkdtemp: random, 0700


class EmbeddedPostgres:
    """A server on ``<data_dir>/pg``, reached only through a Unix socket that its own user, its group and root can enter.

    ``durable=False`` gives up safety against a crash of the *machine* (no fsync), for tests.
    ``url`` can be read by any process that may read the password file, whether or not it started the server.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True, runtime_dir: Path | None = None) -> None:
        self._cluster = Cluster(data_dir.resolve())
        self._durable = durable
        self._runtime_dir = runtime_dir or default_runtime_dir()
        self._lock = DataLock(self._cluster.root / "pg.lock")
        self._account: Account | None = None
        self._binaries: binaries.Binaries | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._refusal = ""

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the service's database. Holds the password: never to be printed or put into argv."""
        return self.url_for(DATABASE)

    def url_for(self, database: str) -> str:
        host = quote(str(self._cluster.socket_dir()), safe="")
        return f"postgresql+psycopg://{cluster.SUPERUSER}:{self._cluster.password()}@/{quote(database)}?host={host}"

    @property
    def pid(self) -> int | None:
        """Of the running server."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def log(self) -> Path:
        return self._cluster.log

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start the server and return when it answers.

        Raises :class:`Conflict` (directory in use), :class:`Invalid` (directory cannot be reached by the server's
        user), :class:`Unavailable` (no programs, no user), :class:`PostgresFailed` (with the end of its log).
        """
        self.launch()
        try:
            if not proc.wait_until(self.ready, timeout_s):
                raise PostgresFailed(self.why_not_ready(timeout_s))
        except BaseException:
            self.stop()
            raise

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server without waiting; :meth:`ready` tells when it answers. Errors as :meth:`start`."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("the server ends with the thread that starts it: start it in the main thread")
        if self._process and self._process.poll() is None:
            return self._process
        require_plain(self._cluster.root)
        make_data_dir(self._cluster.root)
        self._lock.acquire()
        try:
            self._prepare()
            self._process = self._spawn()
        except BaseException:
            self._lock.release()
            raise
        leftovers.record_server(self._cluster, self._process.pid)
        return self._process

    def ready(self) -> bool:
        """Tell whether the server answers, and make the service's database when it is missing.

        Raises :class:`PostgresFailed` when the server has ended.
        """
        if self._process is None or self._process.poll() is not None:
            raise PostgresFailed(f"the database server ended while starting: {self._log_tail()}")
        try:
            with self._connect("postgres") as connection:
                query = "SELECT 1 FROM pg_database WHERE datname = %s"
                if not connection.execute(query, (DATABASE,)).fetchone():
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except psycopg.OperationalError as error:
            self._refusal = str(error)
            return False
        return True

    def why_not_ready(self, waited_s: float) -> str:
        return f"the database was not ready within {waited_s:.0f} s: {self._refusal}; its log ends: {self._log_tail()}"

    def stop(self) -> None:
        """End the server: sessions are cut, then a checkpoint; at once if that takes too long. Frees the lock."""
        if self._process is not None and self._account is not None:
            steps = [(signal.SIGINT, _FAST_STOP_S)] if self._durable else []
            for sig, patience in [*steps, (signal.SIGQUIT, _IMMEDIATE_STOP_S)]:
                if self._process.poll() is None:
                    self._process.send_signal(sig)
                    proc.wait_until(lambda: self.pid is None, patience)
            leftovers.kill_all(self._cluster, self._account)
            self._process.wait()
            self._process = None
            cluster.remove_socket_dir(self._cluster, self._account)
        self._lock.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _prepare(self) -> None:
        self._account = server_account()
        require_reachable(self._cluster.root, self._account)
        if self._process is not None:
            # our own server died under its sessions; one that computes would not notice for as long as it does
            leftovers.kill_all(self._cluster, self._account)
        leftovers.clear(self._cluster, self._account)
        self._binaries = binaries.install(self._cluster.root, self._cluster.major())
        if self._cluster.major() is None:
            cluster.create(self._cluster, self._binaries, self._account, durable=self._durable)

    def _spawn(self) -> subprocess.Popen[bytes]:
        if self._account is None or self._binaries is None:
            raise Unavailable("postgres_not_prepared")
        socket_dir = cluster.prepare_socket_dir(self._cluster, self._account, self._runtime_dir)
        settings = _SETTINGS | ({} if self._durable else _FAST_AND_LOOSE)
        settings["unix_socket_permissions"] = "0770" if self._account.switch else "0700"
        settings["cluster_name"] = leftovers.cluster_name(self._cluster)
        settings["unix_socket_directories"] = '"{}"'.format(str(socket_dir).replace('"', '""'))
        argv = [str(self._binaries.bin / "postgres"), "-D", str(self._cluster.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        with open_log(self._cluster.log) as log:
            return cluster.spawn(argv, self._account, self._cluster.data, log.fileno(), signal.SIGQUIT)

    def _connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self._cluster.socket_dir()),
            user=cluster.SUPERUSER,
            password=self._cluster.password(),
            dbname=database,
            connect_timeout=2,
            autocommit=True,
        )

    def _log_tail(self) -> str:
        try:
            return self._cluster.log.read_bytes()[-2000:].decode(errors="replace")
        except FileNotFoundError:
            return ""

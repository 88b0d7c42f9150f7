"""The connection pool, the edge where transactions open and end, and session locks.

Functions of the store take an open transaction (``Tx``) and never commit. No network or Docker call belongs inside one.
"""

import asyncio
import random
import select
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar, cast

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import event, exc, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from service.domain.errors import Conflict, Invalid, Unavailable

Tx = AsyncConnection
T = TypeVar("T")

CONNECT_TIMEOUT_S = 5
POOL_WAIT_S = 10.0
_PROBE_S = 5.0
_SESSION = (
    "-c timezone=UTC -c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000"
)
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_RETRYABLE = frozenset({"40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "53300", "25P03", "53400"})


class Database:
    """The one database. Every wait is bounded: connect 5 s, pool 10 s, lock 10 s, statement 30 s, idle open 60 s."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = url
        arguments = {"connect_timeout": CONNECT_TIMEOUT_S, "options": _SESSION, **_KEEPALIVE}
        self._engine = create_async_engine(
            url, pool_size=pool_size, max_overflow=0, pool_timeout=POOL_WAIT_S, connect_args=arguments
        )
        event.listen(self._engine.sync_engine, "checkout", _discard_dead)
        self._reading = self._engine.execution_options(postgresql_readonly=True)
        self._snapshot = self._reading.execution_options(isolation_level="REPEATABLE READ")
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Tx]:
        """Open a transaction that commits at the end of the block and rolls back on any exception.

        Raises Unavailable("database_unavailable") when the server cannot be reached, restarts, or has to give up
        (dead lock, time limits); Invalid("unstorable_value") for text that PostgreSQL does not take. A commit that broke off may or may not have happened: repeat only what may be repeated.
        """
        with _translated():
            async with _connected(self._engine) as tx, tx.begin():
                yield tx

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[Tx]:
        """Open a transaction that cannot write. Raises as :meth:`transaction`."""
        with _translated():
            async with _connected(self._reading) as tx, tx.begin():
                yield tx

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Tx]:
        """Open a transaction that cannot write and whose statements all see the same. Raises as :meth:`transaction`."""
        with _translated():
            async with _connected(self._snapshot) as tx, tx.begin():
                yield tx

    @asynccontextmanager
    async def statement(self) -> AsyncGenerator[Tx]:
        """Open a connection for a single statement: no BEGIN and COMMIT around it. Raises as :meth:`transaction`."""
        with _translated():
            async with _connected(self._single) as tx:
                yield tx

    @asynccontextmanager
    async def session_lock(self, name: str, *, wait_s: float = 10.0) -> AsyncGenerator[asyncio.Event]:
        """Hold the database-wide lock ``name``; the event is set when its connection is gone (and so is the lock).

        Raises Conflict("lock_held") when somebody else still holds it after ``wait_s``, Unavailable as above.
        """
        connection = await connect(self.url)
        lost = asyncio.Event()
        try:
            await _take_lock(connection, name, wait_s)
            watcher = asyncio.create_task(_watch(connection, lost))
            try:
                yield lost
            finally:
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)
        finally:
            await connection.close()

    async def close(self) -> None:
        """Close every connection; those of cancelled tasks are on their way back, and have 10 s for it."""
        pool = cast(QueuePool, self._engine.pool)
        with suppress(TimeoutError):
            async with asyncio.timeout(POOL_WAIT_S):
                while pool.checkedout():  # noqa: ASYNC110 - the pool has no event for it
                    await asyncio.sleep(0.005)
        await self._engine.dispose()


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncGenerator[Tx]:
    """As ``engine.connect()``, for tasks that may be cancelled at any moment.

    A connection that is being prepared (read only, isolation level) when its task is cancelled would be lost to the pool,
    with whatever it holds, until the collector finds it: so its preparation goes on, and it is given back.
    """
    opening = asyncio.ensure_future(engine.connect().start())
    try:
        connection = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_give_back)
        raise
    try:
        yield connection
    finally:
        await asyncio.shield(asyncio.ensure_future(connection.close()))


def _give_back(opening: "asyncio.Future[Tx]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        leaving = asyncio.ensure_future(opening.result().close())
        _leaving.add(leaving)
        leaving.add_done_callback(_leaving.discard)


_leaving: set["asyncio.Future[None]"] = set()


async def retrying(
    db: Database, fn: Callable[[Tx], Awaitable[T]], timeout_s: float = 60.0, *, first_pause_s: float = 0.05
) -> T:
    """Run ``fn`` in a transaction, again and again with growing pauses while the database is unavailable.

    For workers. ``fn`` must bear being repeated after a commit whose answer was lost. Raises Unavailable once
    ``timeout_s`` seconds are over.
    """
    deadline = time.monotonic() + timeout_s
    pause = first_pause_s
    while True:
        try:
            async with db.transaction() as tx:
                return await fn(tx)
        except Unavailable as e:
            if e.type != "database_unavailable" or time.monotonic() + pause > deadline:
                raise
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
        pause = min(pause * 2, 5.0)


async def connect(url: str) -> psycopg.AsyncConnection[Any]:
    """Open a connection outside the pool, in autocommit mode. Raises Unavailable("database_unavailable")."""
    try:
        return await psycopg.AsyncConnection.connect(_conninfo(url), autocommit=True)
    except psycopg.Error as e:
        raise Unavailable("database_unavailable", "the database does not answer") from e


def _conninfo(url: str) -> str:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return make_conninfo(plain, connect_timeout=CONNECT_TIMEOUT_S, options="-c timezone=UTC", **_KEEPALIVE)


@contextmanager
def _translated() -> Generator[None]:
    """Turn the driver's word for an unreachable or overloaded server into Unavailable."""
    try:
        yield
    except exc.TimeoutError as e:
        raise Unavailable("database_unavailable", "no free connection to the database") from e
    except (exc.DataError, UnicodeEncodeError) as e:  # NUL, half a surrogate pair, a number out of range
        raise Invalid("unstorable_value", "a value cannot be stored or looked up") from e
    except exc.DBAPIError as e:
        if e.connection_invalidated or _passing(e.orig):
            raise Unavailable("database_unavailable", "the database does not answer") from e
        raise
    except psycopg.Error as e:  # from COPY, which goes past SQLAlchemy
        if _passing(e):
            raise Unavailable("database_unavailable", "the database does not answer") from e
        raise


def _passing(error: BaseException | None) -> bool:
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError)
    return error.sqlstate in _RETRYABLE or error.sqlstate.startswith("08")


def _discard_dead(connection: Any, record: ConnectionPoolEntry, proxy: object) -> None:
    """Reject a pooled connection whose server is gone: an idle socket that is readable has only the goodbye in it.

    This costs one system call where a ping would cost a round trip per transaction.
    """
    del record, proxy
    poll = select.poll()
    poll.register(connection.driver_connection.pgconn.socket, select.POLLIN | select.POLLHUP | select.POLLERR)
    if poll.poll(0):
        raise exc.InvalidatePoolError("server closed the connection")


async def _take_lock(connection: psycopg.AsyncConnection[Any], name: str, wait_s: float) -> None:
    try:
        await connection.execute(f"SET lock_timeout = {max(1, int(wait_s * 1000))}".encode())
        await connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
    except psycopg.errors.LockNotAvailable as e:
        raise Conflict("lock_held", f"another process holds {name!r}") from e
    except psycopg.Error as e:
        raise Unavailable("database_unavailable", "the database does not answer") from e


async def _watch(connection: psycopg.AsyncConnection[Any], lost: asyncio.Event) -> None:
    """Set ``lost`` once the connection is dead: at once when the server closes it, else within two probes."""
    with suppress(psycopg.Error, TimeoutError, OSError):
        while True:
            async for _ in connection.notifies(timeout=_PROBE_S):
                pass
            async with asyncio.timeout(_PROBE_S):
                await connection.execute("SELECT 1")
    lost.set()

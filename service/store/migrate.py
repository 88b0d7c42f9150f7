"""Schema migrations: ``serve`` upgrades, every other process only checks (CONTRACTS 7). Synchronous."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, func, select, text
from sqlalchemy.exc import OperationalError

from service.domain.errors import Fault, Unavailable

MINIMUM_SERVER = 150000
"""PostgreSQL 15, in the server's own numbering."""
_ROOT = Path(__file__).parents[2]
_LOCK = "workstead.migrate"
_LOCK_WAIT = "120s"


class SchemaMismatch(Fault):
    """The database is not at the revision that this version of the code was written for."""


def upgrade(url: str) -> None:
    """Bring the database to the newest revision; one process at a time.

    Raises Unavailable (no connection; another process migrates for longer than 120 s), SchemaMismatch (old server).
    """
    with _connected(url) as connection:
        _check_server(connection)
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'"))
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(_LOCK, 0))))
        command.upgrade(_config(connection), "head")


def downgrade(url: str, revision: str) -> None:
    """Go back to ``revision`` (``base`` = no tables). For tests and operators: data of newer columns is gone."""
    with _connected(url) as connection:
        command.downgrade(_config(connection), revision)


def check(url: str) -> None:
    """Raise SchemaMismatch unless the database is at the newest revision and the server new enough."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    with _connected(url) as connection:
        _check_server(connection)
        found = MigrationContext.configure(connection).get_current_revision()
    if found != head:
        raise SchemaMismatch("schema_mismatch", f"the database is at revision {found}, this version needs {head}")


def check_drift(url: str) -> None:
    """Raise alembic's CommandError if the database's tables differ from ``service.store.tables``."""
    with _connected(url) as connection:
        command.check(_config(connection))


def current(url: str) -> str | None:
    """Return the database's revision; null when it has none."""
    with _connected(url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


@contextmanager
def _connected(url: str) -> Generator[Connection]:
    engine = create_engine(url, connect_args={"connect_timeout": 10})
    try:
        with engine.begin() as connection:
            yield connection
    except OperationalError as e:
        raise Unavailable("database_unavailable", "the database does not answer, or is busy with a migration") from e
    finally:
        engine.dispose()


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_ROOT / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _check_server(connection: Connection) -> None:
    number = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if number < MINIMUM_SERVER:
        raise SchemaMismatch("server_too_old", f"PostgreSQL 15 or newer is needed; this one says {number}")

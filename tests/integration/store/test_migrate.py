"""Migrations: one head, no drift, back and forth, also with data; old servers and other schemas are refused."""

import asyncio
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory

from service.domain.errors import Unavailable
from service.store import migrate
from service.store.database import Database
from tests.fixtures.distribution_postgres import distribution_server, oldest_server
from tests.fixtures.postgres import plain_url
from tests.integration.store.seeds import add_host, add_run, seed
from tests.needs import missing

REVISIONS = Path(__file__).parents[3] / "migrations"
DUMPED = """
    SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2, 3"""


def schema_of(url: str) -> list[list[tuple[object, ...]]]:
    with psycopg.connect(plain_url(url)) as connection:
        return [connection.execute(query.encode()).fetchall() for query in (DUMPED, INDEXES, CONSTRAINTS)]


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory(str(REVISIONS)).get_heads()) == 1


def test_upgrade_from_empty_leaves_no_drift(empty_database_url: str) -> None:
    with pytest.raises(migrate.SchemaMismatch):
        migrate.check(empty_database_url)
    assert migrate.current(empty_database_url) is None
    migrate.upgrade(empty_database_url)
    migrate.check(empty_database_url)
    migrate.check_drift(empty_database_url)
    migrate.upgrade(empty_database_url)


@pytest.mark.fault(127)
async def test_downgrade_and_upgrade_of_a_populated_database_are_equal(empty_database_url: str) -> None:
    """With one revision, what is below it is nothing: the schema must come back equal and hold rows again."""
    url = empty_database_url
    await asyncio.to_thread(migrate.upgrade, url)
    schema = schema_of(url)
    for _ in range(2):
        assert schema_of(url) == schema
        db = Database(url)
        async with db.transaction() as tx:
            await add_run(tx, await seed(tx, "alpha"))
            await add_host(tx)
        await db.close()
        await asyncio.to_thread(migrate.downgrade, url, "base")
        assert schema_of(url)[0] != schema[0]
        with psycopg.connect(plain_url(url)) as connection:
            left = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
            assert {name for (name,) in left} == {"alembic_version", "alembic_version_pkc"}
        await asyncio.to_thread(migrate.upgrade, url)


async def test_two_upgrades_at_once(empty_database_url: str) -> None:
    both = (asyncio.to_thread(migrate.upgrade, empty_database_url) for _ in range(2))
    await asyncio.gather(*both)
    migrate.check(empty_database_url)


def test_an_old_server_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "MINIMUM_SERVER", 990000)
    with pytest.raises(migrate.SchemaMismatch) as caught:
        migrate.check(database_url)
    assert caught.value.type == "server_too_old"


def test_no_server_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        migrate.check("postgresql+psycopg://u:p@/x?host=%2Fnonexistent")


def test_the_oldest_server_takes_the_schema() -> None:
    programs = oldest_server()
    if programs is None:
        missing("no PostgreSQL of the distribution (`make test` installs one)")
    with distribution_server(programs) as url:
        migrate.upgrade(url)
        migrate.check_drift(url)
        migrate.downgrade(url, "base")
        migrate.upgrade(url)

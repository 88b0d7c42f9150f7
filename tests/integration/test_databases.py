"""The one database that many tests use in turn: nothing of a test is there for the next."""

import psycopg
import pytest

from service.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.databases import ReusedDatabase, plain_url


@pytest.fixture
def lender(postgres_server: EmbeddedPostgres, database_template: str) -> ReusedDatabase:
    return ReusedDatabase(postgres_server, database_template)


def everything(url: str) -> dict[str, object]:
    """Return all rows and the next number of each sequence."""
    with psycopg.connect(plain_url(url), autocommit=True) as one:
        names = [
            str(row[0]) for row in one.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        ]
        found: dict[str, object] = {
            name: one.execute(f'SELECT t::text FROM "{name}" t ORDER BY 1'.encode()).fetchall() for name in names
        }
        found["numbers"] = one.execute("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1").fetchall()
    return found


def test_rows_and_numbers_are_those_of_the_template(lender: ReusedDatabase) -> None:
    with lender.lent() as url:
        pristine = everything(url)
        with psycopg.connect(plain_url(url), autocommit=True) as one:
            one.execute("UPDATE projects SET name = 'changed'")
            one.execute("INSERT INTO projects (id, name) VALUES ('prj_new', 'new')")
            one.execute("DELETE FROM alembic_version")
            for (name,) in one.execute("SELECT sequencename FROM pg_sequences").fetchall():
                one.execute("SELECT nextval(%s::regclass)", [name])
        assert everything(url) != pristine
    with lender.lent() as again:
        assert again == url
        assert everything(again) == pristine


def test_who_is_still_connected_is_cut_off(lender: ReusedDatabase) -> None:
    with lender.lent() as url:
        left = psycopg.connect(plain_url(url))
        left.execute("UPDATE projects SET name = 'changed'")
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE more (n int)",
        "CREATE SCHEMA more",
        "ALTER TABLE runs ADD COLUMN more int",
        "ALTER TABLE runs DISABLE TRIGGER ALL",
        "CREATE INDEX more ON runs (id)",
        "ANALYZE alembic_version",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql RETURN 1",
    ],
)
def test_what_is_changed_beside_rows_costs_a_new_one(lender: ReusedDatabase, change: str) -> None:
    with lender.lent() as url, psycopg.connect(plain_url(url), autocommit=True) as one:
        one.execute(change.encode())
    with lender.lent() as again:
        assert again != url


def test_it_is_used_so_often_and_not_more(lender: ReusedDatabase) -> None:
    lender.most_uses, urls = 3, list[str]()
    for _ in range(4):
        with lender.lent() as url:
            urls.append(url)
    assert [url == urls[0] for url in urls] == [True, True, True, False]

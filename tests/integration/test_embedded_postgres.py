"""The embedded PostgreSQL keeps its promises (CONTRACTS 7) on a real server."""

import psycopg

from tests.fixtures.postgres import plain_url


def test_each_test_gets_a_database_of_its_own(empty_database_url: str) -> None:
    with psycopg.connect(plain_url(empty_database_url)) as connection:
        connection.execute("CREATE TABLE mine (id int)")
        row = connection.execute("SELECT current_setting('fsync'), current_setting('listen_addresses')").fetchone()
    assert row == ("off", "")

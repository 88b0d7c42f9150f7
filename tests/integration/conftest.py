"""Fixtures of every integration test: the embedded PostgreSQL and databases on it."""

from tests.fixtures.postgres import database_template, database_url, empty_database_url, postgres_server

__all__ = ["database_template", "database_url", "empty_database_url", "postgres_server"]

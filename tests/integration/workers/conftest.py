"""Workers on the memory sandbox and a real PostgreSQL."""

from tests.integration.lifecycle.conftest import (
    database_template,
    database_url,
    empty_database_url,
    postgres_server,
    stage,
)

__all__ = ["database_template", "database_url", "empty_database_url", "postgres_server", "stage"]

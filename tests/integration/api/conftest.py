"""The API's fixtures, for tests that take longer."""

from tests.api.conftest import (
    database_template,
    other,
    postgres_server,
    quiet_logs,
    shared_url,
    state,
    tenant,
    url,
)

__all__ = ["database_template", "other", "postgres_server", "quiet_logs", "shared_url", "state", "tenant", "url"]

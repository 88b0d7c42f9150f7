"""The API's fixtures, for tests that take longer."""

from tests.api.conftest import (
    other,
    quiet_logs,
    shared_url,
    state,
    tenant,
    url,
)

__all__ = ["other", "quiet_logs", "shared_url", "state", "tenant", "url"]

"""Workers on the memory sandbox and a real PostgreSQL."""

from tests.integration.lifecycle.conftest import stage

__all__ = ["stage"]

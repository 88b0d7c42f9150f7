"""How many reports and table files this process works out at once: each holds its rows in memory."""

from collections.abc import Generator
from contextlib import contextmanager

from service.api.state import ApiState
from service.domain.errors import Unavailable


@contextmanager
def report_slot(state: ApiState) -> Generator[None]:
    """Raises Unavailable("too_many_reports")."""
    if state.open_reports >= state.config.max_reports:
        raise Unavailable("too_many_reports", "this process is working out as many reports as it may; ask again")
    state.open_reports += 1
    try:
        yield
    finally:
        state.open_reports -= 1

"""How many archives this process receives at once."""

from collections.abc import Generator
from contextlib import contextmanager

from service.api.state import ApiState
from service.domain.errors import Unavailable


@contextmanager
def archive_slot(state: ApiState) -> Generator[None]:
    """Raises Unavailable("too_many_uploads")."""
    if state.open_archives >= state.config.max_archives:
        raise Unavailable("too_many_uploads", "this process is receiving as many archives as it may")
    state.open_archives += 1
    try:
        yield
    finally:
        state.open_archives -= 1

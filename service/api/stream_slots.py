"""How many event streams and long polls may be open at once: in this process, and for one token (NEEDS D7)."""

from collections.abc import Generator
from contextlib import contextmanager

from service.api.state import ApiState
from service.domain.errors import RateLimited, Unavailable

RETRY_AFTER_S = 5


def check_slot(state: ApiState, token_id: str) -> None:
    """Raise Unavailable where the process has too many open, RateLimited where the token has."""
    if state.open_streams >= state.config.max_streams:
        raise Unavailable("too_many_streams", "too many open streams and long polls")
    most = state.config.rates.streams_per_token
    if state.streams_of[token_id] >= most:
        headers = {"Retry-After": str(RETRY_AFTER_S)}
        detail = f"a token has at most {most} open streams and long polls"
        raise RateLimited("rate_limited", detail, policy="streams", headers=headers)


@contextmanager
def slot(state: ApiState, token_id: str) -> Generator[None]:
    """Count one as open. Call :func:`check_slot` first, while an answer can still be refused."""
    state.open_streams += 1
    state.streams_of[token_id] += 1
    try:
        yield
    finally:
        state.open_streams -= 1
        state.streams_of[token_id] -= 1
        if not state.streams_of[token_id]:
            del state.streams_of[token_id]

"""Bounds of the gateway. Seconds and bytes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    max_body_bytes: int = 32 << 20
    """Of one request."""
    stalled_s: float = 600.0
    """Longest time without a byte of an answer, in either direction of it."""
    keep_alive_s: float = 20.0
    """Of silence in a stream of events whose status is known, before a comment says that it goes on."""
    connect_s: float = 10.0
    """For a connection to a provider, TLS included."""
    body_idle_s: float = 60.0
    """Longest time without a byte of a request's body."""
    body_s: float = 600.0
    """For the whole body of a request."""
    connections_per_run: int = 256
    connections_upstream: int = 2000
    retry_after_s: float = 120.0
    """Most of a provider's Retry-After that is honoured."""
    first_pause_s: float = 0.5
    """Before the second try; doubles up to ``last_pause_s``, with jitter."""
    last_pause_s: float = 30.0
    replay_time_scale: float = 0.0
    """Of a recording's pauses, when it is replayed: 0 = none, 1 = as they were."""
    local_patience_s: float = 600.0
    """``provider_patience_s`` of callers that have no run."""
    settle_s: float = 15.0
    """After the gateway's start, while workers tell it which runs there are: a token that it does not know yet may be good,
    and whoever shows it is told to come again."""
    keep_dead_s: float = 900.0
    """How long a listener whose run is over goes on to say so."""

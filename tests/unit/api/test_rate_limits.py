"""Buckets: what they let through over time, whatever the pattern; classes; bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api import rate_limits
from service.api.rate_limits import Limiter, Rates


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.floats(0, 3), max_size=200))
def test_never_more_than_the_burst_and_the_rate(pauses: list[float]) -> None:
    clock = Clock()
    limiter = Limiter(Rates(read_per_s=2, read_burst=5), clock)
    began, passed = clock.now, 0
    for pause in pauses:
        clock.now += pause
        bucket = limiter.bucket("tok", limiter.policy("GET", "/v1/runs"))
        passed += bucket.take(clock.now, 1, 1)
        assert passed <= 5 + 2 * (clock.now - began) + 1e-6
        assert -1 <= bucket.left <= 5


def test_a_steady_caller_below_the_rate_is_never_refused() -> None:
    clock = Clock()
    limiter = Limiter(Rates(read_per_s=2, read_burst=5), clock)
    for _ in range(100):
        clock.now += 0.5
        assert limiter.bucket("tok", limiter.policy("GET", "/")).take(clock.now, 1, 1)


def test_headers_and_waits() -> None:
    clock = Clock()
    limiter = Limiter(Rates(), clock)
    policy = limiter.policy("GET", "/v1/runs")
    bucket = limiter.bucket("tok", policy)
    for _ in range(150):
        assert bucket.take(clock.now, 1, 1)
    assert bucket.headers() == {"RateLimit-Policy": '"read";q=200;w=4', "RateLimit": '"read";r=50;t=3'}
    for _ in range(50):
        assert bucket.take(clock.now, 1, 1)
    assert not bucket.take(clock.now, 1, 1)
    assert bucket.wait_s(1) == 1
    assert limiter.bucket("other", policy).left == 200


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/v1/runs", "read"),
        ("HEAD", "/v1/runs/x/artifacts/a", "read"),
        ("GET", "/v1/tasks", "read"),
        ("POST", "/v1/runs", "write"),
        ("DELETE", "/v1/runs/x", "write"),
        ("PUT", "/v1/blobs/aa", "upload"),
        ("HEAD", "/v1/blobs/aa", "upload"),
        ("POST", "/v1/tasks", "upload"),
        ("POST", "/v1/benchmarks", "upload"),
    ],
)
def test_classes(method: str, path: str, name: str) -> None:
    assert Limiter().policy(method, path).name == name


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_BUCKETS", 10)
    monkeypatch.setattr(rate_limits, "MAX_KNOWN", 10)
    limiter = Limiter()
    policy = limiter.policy("GET", "/")
    limiter.bucket("kept", policy).take(limiter.clock(), 100, 1)
    for i in range(100):
        limiter.bucket(f"tok{i}", policy)
        limiter.remember(bytes([i]))
        assert limiter.bucket("kept", policy).left < 150  # in use: not forgotten
    assert not limiter.knows(bytes([1]))
    assert limiter.knows(bytes([99]))
    assert limiter.bucket("tok1", policy).left == 200

"""The pure rules of forwarding: headers, targets, tokens, pauses."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.gateway.auth import Refused, presented
from service.gateway.headers import client_headers, upstream_headers
from service.gateway.limits import GatewayLimits
from service.gateway.redaction import Redactor
from service.gateway.retries import RETRYABLE, pause_s, retry_after_s
from service.gateway.targets import read_escaped_path, read_path, read_query

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_only_what_providers_understand_goes_up() -> None:
    inbound = [
        ("anthropic-beta", "a"), ("anthropic-beta", "b"), ("x-api-key", "wsr"), ("authorization", "Bearer wsr"),
        ("cookie", "c"), ("openai-organization", "evil"), ("x-forwarded-for", "1"), ("content-type", "text/x"),
        ("transfer-encoding", "chunked"), ("host", "evil"), ("accept-encoding", "br"), ("x-stainless-os", "a\r\nb: c"),
    ]  # fmt: skip
    sent = upstream_headers(inbound, {"X-Version": "1"}, {"x-api-key": "real"}, json_body=True)
    assert sent == {
        "anthropic-beta": "a,b", "accept-encoding": "identity", "content-type": "application/json", "x-version": "1",
        "x-api-key": "real",
    }  # fmt: skip
    assert upstream_headers(inbound, {}, {}, json_body=False)["content-type"] == "text/x"


def test_nothing_of_the_account_comes_down() -> None:
    answered = {
        "content-type": "text/event-stream", "set-cookie": "a=b", "openai-organization": "ours", "location": "/x",
        "content-encoding": "gzip", "content-length": "5", "x-request-id": "req-real-key-1", "request-id": "r1",
        "anthropic-ratelimit-tokens-remaining": "7", "retry-after": "3", "www-authenticate": "x",
    }  # fmt: skip
    assert client_headers(answered, Redactor(["real-key-1"])) == {
        "content-type": "text/event-stream", "request-id": "r1", "anthropic-ratelimit-tokens-remaining": "7",
        "retry-after": "3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([("x-api-key", "t")], "t"),
        ([("authorization", "bearer  t ")], "t"),
        ([("x-goog-api-key", "t"), ("authorization", "Bearer t")], "t"),
        ([("authorization", "Basic t")], None),
        ([("x-api-key", "t"), ("x-api-key", "u")], None),
        ([("x-api-key", "t" * 1000)], None),
        ([("cookie", "t")], None),
    ],
)
def test_one_token_in_the_headers_that_clients_know(headers: list[tuple[str, str]], found: str | None) -> None:
    if found is not None:
        assert presented(headers, ()) == found
        return
    with pytest.raises(Refused) as refused:
        presented(headers, ())
    assert refused.value.status == 401


@pytest.mark.fault(62)
def test_a_token_in_the_url_is_refused() -> None:
    with pytest.raises(Refused, match="header"):
        presented([("x-api-key", "t")], ["alt", "key"])


@pytest.mark.parametrize("path", ["/v1/messages", "/v1beta/models/gemini-2.5-pro:generateContent", "/services/search/"])
def test_plain_paths_pass(path: str) -> None:
    assert read_path(path.encode(), path) == path


@pytest.mark.fault(42)
@pytest.mark.parametrize(
    ("raw", "decoded"),
    [
        (b"/v1/..%2fx", "/v1/../x"), (b"/v1%2fmessages", "/v1/messages"), (b"/v1/%2e%2e/x", "/v1/../x"), (b"//host/x", "//host/x"), (b"/v1/a b", "/v1/a b"),
        (b"/v1/%5cx", "/v1/\\x"), (b"/v1/x%00", "/v1/x\0"), (b"/v1/%252e", "/v1/%2e"), (b"/%C3%A9", "/é"), (b"x", "x"),
        (b"/" + b"a" * 5000, "/" + "a" * 5000),
    ],
)  # fmt: skip
def test_paths_that_may_read_differently_elsewhere_do_not(raw: bytes, decoded: str) -> None:
    with pytest.raises(Refused):
        read_path(raw, decoded)


@pytest.mark.fault(42)
@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b"/services/npm/@a%2Fb", "/services/npm/@a%2fb"), (b"/services/npm/x", "/services/npm/x"), (b"/a%2f%2fb", "/a%2f%2fb"),
        (b"/a%2f..", None), (b"/a%2f%2e%2e/b", None), (b"/..%2fa", None), (b"/a%2f%5cb", None), (b"/a%252fb", None), (b"/a%2f/../b", None),
        (b"/a%2f" + b"b" * 5000, None), (b"/%C3%A9%2fa", None), (b"/a%2f\xff", None), (b"x%2fa", None),
    ],
)  # fmt: skip
def test_escaped_slashes_are_kept_and_each_side_is_a_plain_path(raw: bytes, read: str | None) -> None:
    if read is None:
        with pytest.raises(Refused):
            read_escaped_path(raw)
    else:
        assert read_escaped_path(raw) == read


@given(st.binary(max_size=60))
def test_any_query_is_read_or_refused(raw: bytes) -> None:
    with contextlib.suppress(Refused):
        assert len(read_query(raw)) <= 32


def test_what_a_provider_asks_for_is_waited_within_bounds() -> None:
    assert retry_after_s({"retry-after": "7"}, NOW) == 7
    assert retry_after_s({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, NOW) == 60
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "9"}, NOW) == 1.5
    for nonsense in ("", "soon", "-1", "nan", "inf", "1e99"):
        assert retry_after_s({"retry-after": nonsense}, NOW) is None
    limits = GatewayLimits()
    assert pause_s(1, 600, limits, 0.5) == 120
    assert 7 <= pause_s(1, 7, limits, 1.0) < 8


@given(st.integers(1, 100), st.floats(0, 1))
def test_pauses_grow_with_jitter_and_end(tries: int, jitter: float) -> None:
    limits = GatewayLimits()
    grown = min(30.0, 0.5 * 2 ** (tries - 1))
    assert grown / 2 <= pause_s(tries, None, limits, jitter) <= grown


def test_only_a_providers_own_trouble_is_tried_again() -> None:
    assert {429, 500, 503, 529} <= RETRYABLE
    assert not {200, 301, 400, 401, 403, 404, 413, 422} & RETRYABLE

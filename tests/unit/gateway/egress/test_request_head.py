"""Heads of proxied requests: one reading, or none."""

import pytest

from service.domain.egress import HostRefused
from service.gateway.egress.request_head import BadHead, asked, parse_head

END = b"\r\n\r\n"


def test_connect() -> None:
    head = parse_head(b"CONNECT Example.com:443 HTTP/1.1\r\nHost: other.example:1" + END)
    assert (head.method, head.target.host, head.target.port, head.forwarded) == ("CONNECT", "example.com", 443, b"")


def test_plain_http_is_rewritten_for_the_origin_of_its_url() -> None:
    head = parse_head(
        b"GET http://example.com/a?b=1 HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: secret\r\n"
        b"Connection: keep-alive\r\nUpgrade: websocket\r\nAccept: text/html" + END
    )
    assert head.path == "/a?b=1"
    assert head.forwarded == (
        b"GET /a?b=1 HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\naccept: text/html\r\n\r\n"
    )


@pytest.mark.fault(45)
@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked", b"Content-Length: 3\r\nContent-Length: 4",
        b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Content-Length: +3", b"Content-Length: 3, 3", b" Content-Length: 3", b"Content-Length : 3", b"X: a\nY: b",
        b"X: a\0b",
    ],
)  # fmt: skip
def test_what_two_readers_could_read_differently_is_refused(fields: bytes) -> None:
    with pytest.raises(BadHead):
        parse_head(b"POST http://example.com/ HTTP/1.1\r\n" + fields + END)


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1", b"GET https://example.com/ HTTP/1.1", b"GET ftp://example.com/ HTTP/1.1", b"GET http:/x HTTP/1.1",
        b"get http://example.com/ HTTP/1.1", b"GET http://example.com/ HTTP/2", b"GET  http://example.com/ HTTP/1.1", b"",
    ],
)  # fmt: skip
def test_what_is_no_request_to_a_proxy_is_refused(line: bytes) -> None:
    with pytest.raises(BadHead):
        parse_head(line + END)


@pytest.mark.parametrize(
    "url", [b"http://example.com:8080/", b"http://u:p@example.com/", b"http://10.0.0.1/", b"http://[::1]/"]
)
def test_hosts_are_judged_as_everywhere(url: bytes) -> None:
    with pytest.raises(HostRefused):
        parse_head(b"GET " + url + b" HTTP/1.1" + END)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"CONNECT printer.local:443 HTTP/1.1", "printer.local:443"),
        (b"GET http://me:secret@10.0.0.1/path?key=1 HTTP/1.1", "10.0.0.1"),
        (b"CONNECT me:secret@a.example:443 HTTP/1.1", "a.example:443"),
        (b"CONNECT \xff\x1b[2J:443 HTTP/1.1", "\\xff\x1b[2J:443"),
        (b"CONNECT " + b"a" * 999 + b":443 HTTP/1.1", "a" * 255),
        (b"nonsense", None),
        (b"", None),
    ],
)
def test_what_was_asked_for_is_told_without_who_asked(line: bytes, told: str | None) -> None:
    assert asked(line + b"\r\nhost: x\r\n\r\n") == told

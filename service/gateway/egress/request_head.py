"""The head of a proxied HTTP/1.1 request: bounded, strict, taken apart once."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from service.domain.egress import HTTP, HostRefused, Target, parse_authority

MOST_BYTES = 32 << 10
_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,8192}) HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([\t -~\x80-\xff]*)")
_HOP = {b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive", b"te", b"trailer", b"upgrade"}


class BadHead(Exception):
    """Not a request that this proxy reads; ``str()`` is the reason."""


@dataclass(frozen=True, slots=True)
class Head:
    method: str
    target: Target
    path: str
    """Of a plain http request, with its query; empty for CONNECT."""
    forwarded: bytes
    """The head that goes to the origin; empty for CONNECT."""
    length: int | None = None
    """Of the body; null: none, or chunked."""
    chunked: bool = False


def parse_head(data: bytes) -> Head:
    """Read a head up to and with its empty line. Raises BadHead, HostRefused."""
    lines = data.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = _LINE.fullmatch(lines[0])
    if request is None:
        raise BadHead("bad_request_line")
    fields = [_field(line) for line in lines[1:]]
    if request[1] == b"CONNECT":
        return Head("CONNECT", parse_authority(request[2].decode("ascii")), "", b"")
    return _plain(request[1], request[2].decode("ascii"), fields)


def asked(data: bytes) -> str | None:
    """Return what a refused head asked for, for people: host and port as they were written, without a user's name."""
    words = data.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3:
        return None
    place = words[1].partition(b"://")[2] or words[1]
    return place.split(b"/", 1)[0].rpartition(b"@")[2][:255].decode("ascii", "backslashreplace") or None


def _field(line: bytes) -> tuple[bytes, bytes]:
    match = _FIELD.fullmatch(line)
    if match is None:
        raise BadHead("bad_header")
    return match[1].lower(), match[2].strip(b" \t")


def _plain(method: bytes, url: str, fields: list[tuple[bytes, bytes]]) -> Head:
    scheme, _, rest = url.partition("://")
    if scheme.lower() != "http" or not rest:
        raise BadHead("not_a_proxy_request")
    parts = urlsplit(url)
    target = parse_authority(parts.netloc, HTTP)
    if target.port != HTTP:
        raise HostRefused("port_not_allowed")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    length, chunked = _body(fields)
    kept = [(n, v) for n, v in fields if n not in _HOP and n not in (b"host", b"content-length", b"transfer-encoding")]
    lines = [b"%s %s HTTP/1.1" % (method, path.encode("ascii")), b"host: " + target.host.encode(), b"connection: close"]
    lines += [name + b": " + value for name, value in kept]
    if chunked:
        lines.append(b"transfer-encoding: chunked")
    elif length is not None:
        lines.append(b"content-length: %d" % length)
    return Head(method.decode(), target, path, b"\r\n".join(lines) + b"\r\n\r\n", length, chunked)


def _body(fields: list[tuple[bytes, bytes]]) -> tuple[int | None, bool]:
    lengths = {value for name, value in fields if name == b"content-length"}
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if codings:
        if lengths or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise BadHead("ambiguous_length")
        return None, True
    if not lengths:
        return None, False
    value = lengths.pop()
    if lengths or not value.isdigit() or len(value) > 15:
        raise BadHead("ambiguous_length")
    return int(value), False

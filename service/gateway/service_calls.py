"""What of a call to a service passes, in both directions. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qsl, unquote_plus, urlencode

from service.domain.egress import HostRefused, matches, parse_authority
from service.domain.services import CredentialPlace, ServiceSpec, path_allowed
from service.gateway.auth import Refused
from service.gateway.redaction import Redactor

PREFIX = "/services/"
MAX_VALUE = 8 << 10
_SEARCHED = 4 << 20
"""Bytes of a call that are looked through for addresses."""
_ADDRESS = re.compile(r"(?i)\bhttps?:[/\\]{2,}([^/?#\s\"'<>\\]{1,500})")
_UP = frozenset(
    {"accept", "accept-language", "content-type", "user-agent", "range", "if-none-match", "if-modified-since",
     "last-event-id", "mcp-session-id", "mcp-protocol-version"}
)  # fmt: skip
_DOWN = frozenset(
    {"content-type", "content-encoding", "content-disposition", "content-range", "accept-ranges", "etag",
     "last-modified", "cache-control", "retry-after", "mcp-session-id"}
)  # fmt: skip


def split(path: str) -> tuple[str, str]:
    """Return the service's name and the path below it. Raises Refused (404)."""
    name, slash, rest = path.removeprefix(PREFIX).partition("/")
    if not path.startswith(PREFIX) or not name or not slash:
        raise Refused(404, "unknown_path", "services are below /services/<name>/")
    return name, f"/{rest}"


def target(spec: ServiceSpec, method: str, path: str, raw_query: bytes, secret: str | None) -> str:
    """Return the URL to call. Raises Refused (400, 403)."""
    if not path_allowed(spec, method, path):
        raise Refused(403, "call_not_allowed", f"service {spec.name} does not allow {method} {path[:200]}")
    place = spec.credential
    try:
        given = parse_qsl(raw_query.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise Refused(400, "bad_query", "the query cannot be read") from None
    # Whatever the client says under the credential's name would go before or after the real one.
    pairs = [(k, v) for k, v in given if place.place != "query" or k.lower() != (place.name or "").lower()]
    if secret is not None and place.place == "query" and place.name is not None:
        pairs.append((place.name, secret))
    return f"{spec.base_url.rstrip('/')}{path}{'?' + urlencode(pairs) if pairs else ''}"


def refuse_denied(deny_hosts: Sequence[str], raw_query: bytes, body: bytes) -> None:
    """Raise Refused (403) for a call that names an address on the benchmark's deny list: services fetch for the agent."""
    if not deny_hosts:
        return
    words = {*_ADDRESS.findall(unquote_plus(raw_query[:_SEARCHED].decode("latin-1")))}
    words |= {*_ADDRESS.findall(body[:_SEARCHED].decode(errors="replace").replace("\\/", "/"))}
    words |= {value.lstrip("/").partition("/")[0] for _, value in parse_qsl(raw_query.decode("latin-1"))}
    for word in words:
        try:
            host = parse_authority(word.rpartition("@")[2], 443).host
        except HostRefused:
            continue
        if any(matches(pattern, host) for pattern in deny_hosts):
            raise Refused(403, "denied_by_benchmark", f"this benchmark keeps {host[:200]} from its agents")


def headers_up(spec: ServiceSpec, inbound: Iterable[tuple[str, str]], secret: str | None) -> dict[str, str]:
    kept = {name: value for name, value in inbound if name in _UP and len(value) <= MAX_VALUE and _sound(value)}
    own = {name.lower(): value for name, value in spec.headers.items()}
    return {**kept, "accept-encoding": "identity", **own, **_credential(spec.credential, secret)}


def headers_down(answered: Mapping[str, str], redactor: Redactor) -> list[tuple[str, str]]:
    """Return what of the answer's headers passes: none with the service's secret in it, however it is written."""
    return [
        (name, value)
        for name, value in answered.items()
        if name in _DOWN and len(value) <= MAX_VALUE and _sound(value) and redactor.redact_text(value) == value
    ]


def _credential(place: CredentialPlace, secret: str | None) -> dict[str, str]:
    if secret is None or place.place in ("query", "none"):
        return {}
    return {"authorization": f"Bearer {secret}"} if place.place == "bearer" else {(place.name or "").lower(): secret}


def _sound(value: str) -> bool:
    return value.isascii() and value.isprintable()

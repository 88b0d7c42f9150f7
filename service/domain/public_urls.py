"""URLs that users give and that this service calls: which ones may be (threat T17). Pure; names are resolved elsewhere.

A URL is taken apart once, here, and what is called is built from the parts: no second parser can see another host.
"""

import ipaddress
import re
from dataclasses import dataclass

from service.domain.errors import Invalid

MAX_URL = 2000
_URL = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>/[!\"$-\[\]-~]*)?",
    re.ASCII,
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_LOCAL = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa", "test", "invalid", "onion")
_PORTS = {"http": 80, "https": 443}
_UNICAST = ipaddress.ip_network("2000::/3")
# Inside 2000::/3: Teredo and other protocol assignments, documentation (two of them), 6to4. What else is not global
# (NAT64, IPv4-mapped, link-local, unique local, site-local) lies outside.
_NOT_GLOBAL_V6 = [ipaddress.ip_network(n) for n in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
# Beside what the standard library calls private: relays of 6to4, and carriers' own addresses.
_NOT_GLOBAL_V4 = [ipaddress.ip_network(n) for n in ("192.88.99.0/24", "100.64.0.0/10", "192.0.0.0/24")]


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The parts of a URL that may be called, provided that its name resolves to global addresses only."""

    scheme: str
    host: str
    """Lower case; a name without a final dot, or an address without brackets."""
    port: int
    target: str
    """Path and query."""

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> str | None:
        """The host, if it is an address already."""
        return self.host if _is_address(self.host) else None

    def at(self, address: str) -> str:
        """Return the URL with ``address`` in place of the name."""
        host = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{host}:{self.port}{self.target}"


def parse_public_url(url: str, *, allow_private: bool = False) -> PublicUrl:
    """Take ``url`` apart. Raises Invalid ``bad_url`` for what may not be called.

    Only ``https`` and names or addresses that are global by their look; ``allow_private`` (tests, development) lets
    through ``http`` and every host. Never: user names, fragments, zone ids, numbers that pretend to be names.
    """
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None:
        raise Invalid("bad_url", "not a plain http(s) URL: ASCII, no user name, no fragment, at most 2 000 characters")
    scheme = match["scheme"]
    host = (match["v6"] or match["host"]).lower().removesuffix(".")
    port = int(match["port"] or _PORTS[scheme])
    if not 1 <= port <= 65535:
        raise Invalid("bad_url", "there is no such port")
    if scheme != "https" and not allow_private:
        raise Invalid("bad_url", "the URL must be https")
    _check_host(host, is_v6=match["v6"] is not None, allow_private=allow_private)
    return PublicUrl(scheme, host, port, match["target"] or "/")


def is_global(address: str) -> bool:
    """Tell whether an address (as getaddrinfo gives it) is one that anybody on the internet could reach."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a zone id makes it local
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        return ip.scope_id is None and ip in _UNICAST and not any(ip in net for net in _NOT_GLOBAL_V6)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not any(ip in n for n in _NOT_GLOBAL_V4)


def _check_host(host: str, *, is_v6: bool, allow_private: bool) -> None:
    if is_v6 or _looks_numeric(host):
        if not _is_address(host):
            raise Invalid("bad_url", "not an address: four decimal numbers, or IPv6 in brackets")
        if not allow_private and not is_global(host):
            raise Invalid("bad_url", "the address is not a public one")
        return
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Invalid("bad_url", "not a host name")
    if not allow_private and (len(labels) < 2 or labels[-1] in _LOCAL):
        raise Invalid("bad_url", "the name is a local one")


def _looks_numeric(host: str) -> bool:
    """Tell whether resolvers may read the host as a number: its last label starts with a digit (``0x7f`` too)."""
    return host.rsplit(".", 1)[-1][:1].isdigit()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

"""Which host of a proxied request may be reached. Pure: the name is judged before anybody resolves it.

A denied name is never resolved: the question itself would carry data out.
"""

import re
from dataclasses import dataclass

from service.domain.policies import NetworkRules
from service.domain.tasks import NetworkPolicy

HTTP, HTTPS = 80, 443
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_LOCAL = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa", "test", "invalid", "onion")


class HostRefused(Exception):
    """``str()`` is the reason, one of a fixed set: it goes into events."""


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    """ASCII, lower case, no final dot."""
    port: int


def parse_authority(text: str, default_port: int | None = None) -> Target:
    """Read ``host:port``. Raises HostRefused for user names, addresses in any notation, and what is no name."""
    if "@" in text:
        raise HostRefused("user_name_in_host")
    if text.startswith("[") or text.count(":") > 1:
        raise HostRefused("address_instead_of_name")
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = text, "" if default_port is None else str(default_port)
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise HostRefused("bad_port")
    return Target(normal_host(host), int(port))


def normal_host(text: str) -> str:
    """Return the name as it is compared and resolved. Raises HostRefused."""
    try:
        host = text.encode("idna").decode("ascii").lower() if not text.isascii() else text.lower()
    except UnicodeError:
        raise HostRefused("bad_name") from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostRefused("bad_name")
    if labels[-1][0].isdigit():  # resolvers read 0x7f.1, 2130706433 and 127.1 as addresses
        raise HostRefused("address_instead_of_name")
    if len(labels) < 2 or labels[-1] in _LOCAL:
        raise HostRefused("local_name")
    return host


def check(rules: NetworkRules, target: Target) -> None:
    """Raise HostRefused unless the policy lets the target through. Says nothing of the addresses behind the name."""
    if target.port not in (HTTP, HTTPS):
        raise HostRefused("port_not_allowed")
    if any(matches(pattern, target.host) for pattern in rules.deny_hosts):
        raise HostRefused("denied_by_benchmark")
    if rules.policy is NetworkPolicy.WEB:
        return
    if rules.policy is NetworkPolicy.ALLOWLIST and any(matches(p, target.host) for p in rules.allow_hosts):
        return
    raise HostRefused("not_on_allowlist")


def matches(pattern: str, host: str) -> bool:
    """``*.`` and a suffix matches every name below the suffix, not the suffix itself."""
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern

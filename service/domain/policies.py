"""What a run may reach and spend: network policy, provider-side tools, budget (NEEDS A1, A2, B8, B12)."""

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field, TypeAdapter, ValidationError

from service.domain.tasks import HostPattern, Money, NetworkPolicy, Strict

MOST_DENIED = 2_000
"""Hosts of a task and of its benchmarks together."""
_HOST = TypeAdapter(HostPattern)


class ProviderTools(StrEnum):
    """Server-side tools of the provider (web search, code execution …) are egress."""

    DENY = "deny"
    """The entries are taken out of the request and an event says so."""
    REFUSE = "refuse"
    """A request that names one is answered 400."""
    ALLOW = "allow"


class NetworkRules(Strict):
    """The network policy of one run, resolved."""

    policy: NetworkPolicy = NetworkPolicy.NONE
    allow_hosts: list[HostPattern] = Field(default_factory=list[str], max_length=1000)
    """Of ``allowlist``."""
    deny_hosts: list[HostPattern] = Field(default_factory=list[str], max_length=MOST_DENIED)
    """Of ``web``, and blocked domains of provider-side search: the benchmark's deny list (NEEDS A3)."""


class RunBudget(Strict):
    """What all attempts of a run together may spend on models; null = no limit of its own."""

    max_requests: int | None = Field(default=None, ge=0, le=1_000_000)
    max_tokens: int | None = Field(default=None, ge=0)
    """Input and output, cached ones included."""
    max_usd: Money | None = None
    """A request whose price is unknown counts as nothing here; ``max_requests`` and ``max_tokens`` still hold."""
    provider_patience_s: float = Field(default=600, ge=0, le=86_400)
    """How long one request waits at the gateway for a provider that is down or limits us, before the attempt ends as
    ``provider_unavailable``."""


def default_provider_tools(policy: NetworkPolicy) -> ProviderTools:
    return ProviderTools.ALLOW if policy is NetworkPolicy.WEB else ProviderTools.DENY


def hosts_of(deny_list: Iterable[str]) -> list[str]:
    """Return the hosts of a benchmark's deny list, without ports and in lower case; each with what lies below it.

    What is no host (an address, an empty line) is left out: no sandbox reaches an address by itself.
    """
    found: list[str] = []
    for entry in deny_list:
        host = entry.lower().partition(":")[0].removeprefix("*.").strip(".")
        try:
            found += [_HOST.validate_python(host), _HOST.validate_python(f"*.{host}")]
        except ValidationError:
            continue
    return found

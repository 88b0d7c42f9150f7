"""Which headers pass, in both directions; everything that is not named here stays behind. Pure."""

import re
from collections.abc import Iterable, Mapping

from service.gateway.redaction import Redactor

MAX_VALUE = 8 << 10
_TOKEN = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e\t]*", re.ASCII)
_PASS_UP = ("anthropic-", "openai-", "x-stainless-")
_PASS_UP_NAMES = frozenset({"accept", "user-agent", "x-goog-api-client"})
# They name somebody's account: whoever pays is the catalogue's business.
_NEVER_UP = frozenset({"openai-organization", "openai-project", "anthropic-organization-id"})
_PASS_DOWN = ("anthropic-ratelimit-", "x-ratelimit-", "openai-processing-", "openai-version", "openai-model")
_PASS_DOWN_NAMES = frozenset(
    {"content-type", "cache-control", "retry-after", "retry-after-ms", "request-id",
     "x-request-id", "x-should-retry"}
)  # fmt: skip
MAX_PASSED = 64


def upstream_headers(
    inbound: Iterable[tuple[str, str]], own: Mapping[str, str], credential: Mapping[str, str], *, json_body: bool
) -> dict[str, str]:
    """Return what goes to a provider: the few inbound headers that it understands, the catalogue's, the credential."""
    kept: dict[str, str] = {}
    for name, value in inbound:
        if _passes_up(name, json_body=json_body) and len(value) <= MAX_VALUE and len(kept) < MAX_PASSED:
            # A repeated header of a list means its values together.
            kept[name] = f"{kept[name]},{value}" if name in kept else value
    fixed = {"accept-encoding": "identity"} | ({"content-type": "application/json"} if json_body else {})
    lower = {name.lower(): value for name, value in [*own.items(), *credential.items()]}
    return {name: value for name, value in {**kept, **fixed, **lower}.items() if _sound(name, value)}


def client_headers(answered: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Return what of a provider's headers the client sees. The body reaches it decoded."""
    kept = {
        name: value
        for name, value in answered.items()
        if (name in _PASS_DOWN_NAMES or name.startswith(_PASS_DOWN)) and len(value) <= MAX_VALUE and _sound(name, value)
    }
    kept = {name: value for name, value in kept.items() if redactor.redact_text(value) == value}
    return dict(list(kept.items())[:MAX_PASSED])


def _passes_up(name: str, *, json_body: bool) -> bool:
    if name in _NEVER_UP:
        return False
    return name in _PASS_UP_NAMES or name.startswith(_PASS_UP) or (name == "content-type" and not json_body)


def _sound(name: str, value: str) -> bool:
    return _TOKEN.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None

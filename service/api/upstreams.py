"""Addresses that projects give to the gateway: which may be private, and what headers may be fixed."""

import re
from collections.abc import Mapping

from service.api.auth import Caller
from service.api.operators import is_operator
from service.api.state import ApiState
from service.domain.errors import Invalid
from service.domain.public_urls import parse_public_url

_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_RESERVED = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect", "cookie"}
)
_SECRET = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key"})


async def may_be_private(state: ApiState, caller: Caller) -> bool:
    """Tell whether this caller's upstreams may be plain http and at private addresses (NEEDS A26)."""
    return state.config.private_upstreams or await is_operator(state, caller)


def check_upstream(base_url: str, headers: Mapping[str, str], *, private: bool) -> None:
    """Raises Invalid ``bad_url`` (what it resolves to is checked at use), ``bad_headers``."""
    parse_public_url(base_url, allow_private=private)
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED or not (value.isascii() and value.isprintable()):
            raise Invalid(
                "bad_headers", "a header that may not be set, or a value that is not plain ASCII", header=name
            )
        if name.lower() in _SECRET:
            raise Invalid("bad_headers", "a key is brought as the credential, where nobody can read it", header=name)

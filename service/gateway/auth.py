"""Who asks: the run token in one of the headers that clients know, and nowhere else. Pure."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence

MAX_TOKEN = 512
_HEADERS = frozenset({"x-api-key", "authorization", "x-goog-api-key"})


class Refused(Exception):
    """The request is answered with an error of ours; ``type`` is stable, ``str()`` is for the client."""

    def __init__(self, status: int, type: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.type = type


def presented(headers: Iterable[tuple[str, str]], query_names: Iterable[str]) -> str:
    """Return the one token that a request shows. Raises Refused (401).

    Several headers may carry it (some clients send two); then they must agree. A token in the URL ends up in logs.
    """
    if "key" in query_names or "api_key" in query_names:
        raise Refused(401, "token_in_query", "put the run token into a header, not into the URL")
    values = {_bare(name, value) for name, value in headers if name in _HEADERS}
    if not values:
        raise Refused(401, "token_missing", "no run token in x-api-key, authorization or x-goog-api-key")
    token = values.pop()
    if values or not token or len(token) > MAX_TOKEN:
        raise Refused(401, "token_invalid", "not a run token")
    return token


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def among(hashed: str, known: Sequence[str]) -> bool:
    """Tell whether ``hashed`` is one of ``known``; the time does not tell which characters were right."""
    found = False
    for one in known:
        found |= hmac.compare_digest(hashed, one)
    return found


def _bare(name: str, value: str) -> str:
    if name != "authorization":
        return value.strip()
    scheme, _, rest = value.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""

"""Rate limits at the request: who pays, what a refusal looks like, and the headers that say what is left."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request

from service.api.rate_limits import UNCHANGED_COST, Bucket
from service.api.state import ApiState
from service.domain.errors import RateLimited

_CHARGED = "charged"
_CHARGE = "charge"


def charge(request: Request, state: ApiState, token_id: str) -> None:
    """Charge the call to the token. Raises RateLimited.

    A conditional call may go on with the price of a 304: it gets the rest back where it is one.
    """
    conditional = "if-none-match" in request.headers and request.method in ("GET", "HEAD")
    _take(request, state, token_id, 1, UNCHANGED_COST if conditional else 1)


def charge_unchanged(request: Request, state: ApiState, token_id: str) -> None:
    """Charge a call that will be answered 304. Raises RateLimited."""
    _take(request, state, token_id, UNCHANGED_COST, UNCHANGED_COST)


def _take(request: Request, state: ApiState, token_id: str, cost: float, needed: float) -> None:
    limiter = state.limiter
    bucket = limiter.bucket(token_id, limiter.policy(request.method, request.url.path))
    taken = bucket.take(limiter.clock(), cost, needed)
    request.scope["state"][_CHARGED] = bucket
    request.scope["state"][_CHARGE] = cost if taken else 0
    if not taken:
        detail = f"too many calls of the class {bucket.policy.name!r}; see RateLimit-Policy"
        raise _refusal(bucket, needed, detail)


def charged_headers(state: Mapping[str, Any], status: int) -> dict[str, str]:
    """Return the headers of an answer that was charged; a 304 gets back what it paid too much."""
    bucket = state.get(_CHARGED)
    if not isinstance(bucket, Bucket):
        return {}
    if status == 304:
        bucket.give_back(state[_CHARGE] - UNCHANGED_COST)
    return bucket.headers()


def check_failures(request: Request, state: ApiState, credential: bytes) -> None:
    """Refuse an address that failed too often, except for credentials that were good before. Raises RateLimited."""
    bucket = _failures(request, state)
    if bucket.left < 1 and not state.limiter.knows(credential):
        raise _refusal(bucket, 1, "too many wrong credentials from this address")


def note_failure(request: Request, state: ApiState) -> None:
    _failures(request, state).take(state.limiter.clock(), 1, 1)


def _failures(request: Request, state: ApiState) -> Bucket:
    address = request.client.host if request.client is not None else ""
    return state.limiter.bucket(f"peer {address}", state.limiter.failures)


def _refusal(bucket: Bucket, needed: float, detail: str) -> RateLimited:
    headers = {"Retry-After": str(bucket.wait_s(needed)), **bucket.headers()}
    return RateLimited("rate_limited", detail, policy=bucket.policy.name, headers=headers)

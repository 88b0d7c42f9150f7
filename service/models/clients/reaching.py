"""What the adapters share: the way to the gateway, and what its errors mean."""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import httpx2

from service.domain.limits import MIB
from service.models.messages import UNAVAILABLE, Ask, GatewayAway, ModelRefused, Reach, ToolCall
from service.models.sockets import NO_TLS

ADDRESS = "http://gateway"
TIMEOUT_S = 3600.0
"""Between two bytes of an answer; the gateway's own limits on providers are shorter, the run's deadline comes first."""
ANSWER_BYTES = 16 * MIB
MAX_CALLS = 128
"""Most tool calls of one answer; the others are dropped."""
_TOO_LONG = re.compile(
    r"prompt is too long|context.{0,10}(length|window)|maximum context|too many (input )?tokens|token count .{0,40}exceeds"
    r"|input is too long",
    re.IGNORECASE,
)
_NOT_RECORDED = re.compile(r"\bcassette_(mismatch|incomplete)\b")
RETRYABLE = 503


def http_client(reach: Reach) -> httpx2.AsyncClient:
    """Return a client that reaches nothing but the gateway's socket."""
    timeout = httpx2.Timeout(TIMEOUT_S, connect=10.0)
    transport = httpx2.AsyncHTTPTransport(uds=reach.socket, verify=NO_TLS)
    return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, headers=reach.headers)


def headers_of(ask: Ask) -> dict[str, str]:
    """Return what the gateway is told of this one request."""
    told = {"x-workstead-subject": ask.subject, "x-workstead-replay": ask.replay_of}
    return {name: value for name, value in told.items() if value is not None}


@contextmanager
def transport_errors() -> Generator[None]:
    """Turn a lost connection into GatewayAway; an answer that is not what the API promises into ModelRefused."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise GatewayAway("gateway_away", str(error)) from error
    except httpx2.TransportError as error:
        raise answer_cut(error) from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # The SDKs check nothing of what they read: a field may be missing, or anything.
        raise ModelRefused("bad_answer", f"{type(error).__name__}: {error}"[:500], http_status=200) from error


def connection_error(error: Exception) -> GatewayAway:
    """Return what an SDK's error of the connection means, by its cause."""
    if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
        return GatewayAway("gateway_away", str(error.__cause__)[:500])
    return answer_cut(error)


def answer_cut(error: Exception) -> GatewayAway:
    return GatewayAway("answer_cut", f"{type(error).__name__}: {error}"[:500])


def refused(status: int, body: object, message: str) -> ModelRefused | GatewayAway:
    """Return what an error answer means."""
    text = f"{message} {body}"[:4000]
    if status == RETRYABLE:
        return GatewayAway(UNAVAILABLE if UNAVAILABLE in text else "unavailable", message[:500])
    kind = "model_refused"
    if "budget_exhausted" in text:
        kind = "budget_exhausted"
    elif _NOT_RECORDED.search(text):
        kind = "not_recorded"
    elif status in (400, 413) and _TOO_LONG.search(text):
        kind = "context_too_long"
    elif status >= 500 or status == 429 or "provider_rejected_credential" in text:
        kind = "provider_failed"
    return ModelRefused(kind, message[:2000], http_status=status)


def tool_call(id: str, name: str, raw: str) -> ToolCall:
    """Read a call's arguments as the model wrote them."""
    try:
        found: Any = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        found = None
    arguments = cast("dict[str, Any]", found) if isinstance(found, dict) else None
    return ToolCall(id=id, name=name, arguments=arguments, raw=raw if arguments is None else "")


def inner(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object below ``key``; an empty one where there is none."""
    found: Any = holder.get(key)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def listed(holder: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the list below ``key``."""
    found: Any = holder.get(key)
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [item for item in items if isinstance(item, dict)]


def count(holder: Mapping[str, Any], key: str) -> int:
    """Return the number below ``key``; 0 where there is none."""
    found: Any = holder.get(key)
    return max(0, int(found)) if isinstance(found, int | float) else 0


class Size:
    """Counts what an answer brings. ``add`` raises ModelRefused ``bad_answer`` past the limit."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, *texts: str | None) -> None:
        self.bytes += sum(len(text) for text in texts if text)
        if self.bytes > ANSWER_BYTES:
            raise ModelRefused("bad_answer", f"an answer of more than {ANSWER_BYTES} bytes", http_status=200)

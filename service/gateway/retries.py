"""Which answers of a provider are worth another try, and when. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from service.gateway.limits import GatewayLimits
from service.gateway.ports import TryOutcome

RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})


def outcome_of(status: int) -> TryOutcome:
    if status == 429:
        return TryOutcome.LIMITED
    if status in (401, 403):
        return TryOutcome.REJECTED
    if status >= 500 or status == 408:
        return TryOutcome.FAILED
    return TryOutcome.OK if status < 300 else TryOutcome.NEUTRAL


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return what the provider asks for, in seconds; None if it says nothing, or nothing that makes sense."""
    millis = headers.get("retry-after-ms", "")
    if millis.isascii() and millis.isdigit():
        return int(millis[:12]) / 1000
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
        return seconds if 0 <= seconds < 1e9 else None
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())


def pause_s(tries: int, asked_s: float | None, limits: GatewayLimits, jitter: float) -> float:
    """Return seconds before the next try after ``tries`` of them; ``jitter`` is from 0 to 1."""
    grown = min(limits.last_pause_s, limits.first_pause_s * 2.0 ** min(tries - 1, 16))
    own = grown * (0.5 + jitter / 2)
    return own if asked_s is None else min(limits.retry_after_s, max(asked_s, 0.0) + own * 0.1)

"""``"60 minutes"`` in seconds."""

import re
from typing import Any

LONGEST_S = 7 * 86_400.0
_PART = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(seconds?|secs?|minutes?|mins?|hours?|hrs?|days?)\b", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def parse_duration(text: Any) -> float | None:
    """Return seconds, or None for what is not one or more amounts with units, or not above 0 and at most a week."""
    if not isinstance(text, str) or len(text) > 200:
        return None
    rest = _PART.sub("", text).replace(",", " ").replace("and", " ").strip()
    total = sum(float(m[1]) * _UNITS[m[2][0].lower()] for m in _PART.finditer(text))
    return total if not rest and 0 < total <= LONGEST_S else None

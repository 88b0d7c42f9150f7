"""Values of a workbook's cells: what the file says, as one of few types, and whether two of them are the same."""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

Value = float | str | bool | None
RELATIVE = 1e-9
TINY = 1e-12
ERROR = "#"
_DATES = frozenset({14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 46, 47})
_QUOTED = re.compile(r'"[^"]{0,200}"|\[[^\]]{0,40}\]|\\.')
_DATE_LETTERS = re.compile(r"[dmyhs]", re.IGNORECASE)
_MOST_DAYS = 2_958_465.0
"""The last day of the year 9999."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a value: ``#DIV/0!``."""

    name: str


def is_date_format(number: int, code: str) -> bool:
    """Whether numbers of this format are moments."""
    return number in _DATES or bool(_DATE_LETTERS.search(_QUOTED.sub("", code[:500])) and "General" not in code)


def moment(days: float, *, since_1904: bool) -> str | None:
    """Return days since the workbook's first day as a date, or a time where there is no day; null where it is none."""
    if not 0 <= days <= _MOST_DAYS:
        return None
    # Lotus took 1900 for a leap year, and its day numbers stayed.
    start = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook has no zone
    when = start + timedelta(seconds=round(days * 86400))
    if days < 1:
        return when.strftime("%H:%M:%S")
    return when.strftime("%Y-%m-%d") if days == int(days) else when.strftime("%Y-%m-%d %H:%M:%S")


def shown(value: Value | Failure) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, Failure):
        return value.name
    if isinstance(value, str):
        return value.replace("\r", "").replace("\n", "⏎").replace("\t", " ")
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def same(cached: Value | Failure, found: Value | Failure) -> bool:
    """Whether a remembered value is the one that was found: of the same type; numbers up to a relative 1e-9."""
    if isinstance(cached, bool) or isinstance(found, bool):
        return cached is found
    if isinstance(cached, float) and isinstance(found, float):
        return math.isclose(cached, found, rel_tol=RELATIVE, abs_tol=TINY)
    return (cached or "") == (found or "") if _is_text(cached) and _is_text(found) else cached == found


def _is_text(value: Value | Failure) -> bool:
    return value is None or isinstance(value, str)


def column(letters: str) -> int:
    """Return the number of a column from 1; 0 for what is none."""
    number = 0
    for letter in letters[:4]:
        if not "A" <= letter <= "Z":
            return 0
        number = number * 26 + ord(letter) - 64
    return number


def letters(number: int) -> str:
    found = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        found = chr(65 + rest) + found
    return found

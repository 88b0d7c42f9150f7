"""Type-strict comparison of one given value with one expected value.

- A number is never a string and never a boolean: ``"3"`` is not 3, ``true`` is not 1.
- ``int`` takes 3 and 3.0 alike (JSON knows one kind of number; JSON Schema calls 3.0 an integer), never 3.5.
- Strings are compared after Unicode NFC and without surrounding white space.
"""

import json
import math
import unicodedata
from typing import Any, cast

from service.graders.exact.settings import FLOAT_DEFAULT, AnswerRule

QUOTED_CHARS = 80
MAX_LIST = 500
"""Longest expected list; matching without order takes quadratic time and as deep a recursion as there are items."""


def fits(value: Any, rule: AnswerRule) -> bool:
    """Tell whether ``value`` is of the rule's type at all."""
    match rule.type:
        case "int":
            return is_number(value) and float(value).is_integer()
        case "float":
            return is_number(value)
        case "bool":
            return isinstance(value, bool)
        case "list":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "choice":
            return isinstance(value, str) and any(_same_text(value, c, rule) for c in rule.choices)


def equal(given: Any, expected: Any, rule: AnswerRule) -> bool:
    """Compare two values that both fit the rule."""
    match rule.type:
        case "int":
            return given == expected
        case "float":
            return close(given, expected, rule)
        case "list":
            return _same_list(cast(list[Any], given), cast(list[Any], expected), rule)
        case "bool":
            return given is expected
        case "string" | "choice":
            return _same_text(given, expected, rule)


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def close(given: float, expected: float, rule: AnswerRule) -> bool:
    tolerance = rule.tolerance or FLOAT_DEFAULT
    return abs(given - expected) <= max(tolerance.absolute, tolerance.relative * abs(expected))


def quote(value: Any) -> str:
    """Return a short ASCII form for a reason: untrusted text, so without control characters."""
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= QUOTED_CHARS else f"{text[: QUOTED_CHARS - 1]}…"


def _same_text(a: str, b: str, rule: AnswerRule) -> bool:
    a, b = (unicodedata.normalize("NFC", text).strip() for text in (a, b))
    return a == b if rule.case_sensitive else a.casefold() == b.casefold()


def _same_list(given: list[Any], expected: list[Any], rule: AnswerRule) -> bool:
    if len(given) != len(expected):
        return False
    if rule.ordered:
        return all(_same_item(g, e, rule) for g, e in zip(given, expected, strict=True))
    return _match_all(given, expected, rule)


def _match_all(given: list[Any], expected: list[Any], rule: AnswerRule) -> bool:
    # Augmenting paths, not first fit: with tolerances an item may equal several, and the first need not be the right one.
    partner: dict[int, int] = {}

    def place(g: int, seen: set[int]) -> bool:
        for e, item in enumerate(expected):
            if e in seen or not _same_item(given[g], item, rule):
                continue
            seen.add(e)
            if e not in partner or place(partner[e], seen):
                partner[e] = g
                return True
        return False

    return all(place(g, set()) for g in range(len(given)))


def _same_item(given: Any, expected: Any, rule: AnswerRule) -> bool:
    if is_number(given) and is_number(expected):
        return close(given, expected, rule)
    if isinstance(given, str) and isinstance(expected, str):
        return _same_text(given, expected, rule)
    return type(given) is type(expected) and given == expected

"""The three comparators, and which choice an answer means. Pure.

- ``exact``: the same characters.
- ``trim``: CRLF is LF, white space at the end of a line does not count, nor one final newline.
- ``lenient``: as ``trim``; then after Unicode NFC, or as equal JSON values, or as numbers within 1e-9 (absolute or
  relative, whichever is larger). Two integers are equal only if they are the same.
"""

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, cast

from service.graders.test_cases.settings import Comparator
from service.graders.test_cases.tests_file import LETTERS

TOLERANCE = 1e-9
_BLANK = " \t\r\v\f"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS = 4000
"""Longest number that is read as one: Python refuses integers of more digits."""


def equal(given: str, expected: str, comparator: Comparator) -> bool:
    if comparator == "exact":
        return given == expected
    ours, theirs = trimmed(expected), trimmed(given)
    return ours == theirs or (comparator == "lenient" and _leniently(theirs, ours))


def trimmed(text: str) -> str:
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return "\n".join(line.rstrip(_BLANK) for line in lines)


def choice_letter(answer: str, choices: Sequence[str]) -> str | None:
    """Return the letter that ``answer`` names, in either case, or whose full text it is, if only one has that text."""
    text = answer.strip()
    known = LETTERS[: len(choices)]
    if len(text) == 1 and text.upper() in known:
        return text.upper()
    meant = [letter for letter, choice in zip(known, choices, strict=True) if _nfc(choice.strip()) == _nfc(text)]
    return meant[0] if len(meant) == 1 else None


def _leniently(given: str, expected: str) -> bool:
    if _nfc(given) == _nfc(expected):
        return True
    values = _number(given), _number(expected)
    if None not in values:
        return _same(*values)
    try:
        return _same(_json(given), _json(expected))
    except (ValueError, RecursionError):
        return False


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _number(text: str) -> int | float | None:
    text = text.strip()
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:
        value = float(text)
        return value if math.isfinite(value) else None


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _same(a: Any, b: Any) -> bool:
    """Compare JSON values; a number is never a boolean or a string."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _close(a, b)
    if isinstance(a, list) and isinstance(b, list):
        left, right = cast("list[Any]", a), cast("list[Any]", b)
        return len(left) == len(right) and all(_same(x, y) for x, y in zip(left, right, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        one, other = cast("dict[str, Any]", a), cast("dict[str, Any]", b)
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(a, str) and isinstance(b, str):
        return _nfc(a) == _nfc(b)
    return a is None and b is None


def _close(a: float, b: float) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    try:
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except OverflowError:  # an integer beyond what a float can be
        return False

"""Reading a judge's answer: one JSON object of exactly the shape that was asked for, or no vote.

Two habits of models are forgiven, since they change no meaning: a fence of backquotes around the object and a comma before a
closing bracket. Nothing is guessed: what else does not fit is an InvalidVote with its cause.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

from service.domain.cleaning import clean_str
from service.graders.contract import InvalidVote
from service.graders.strict_json import NotUsable, parse_object

MOST_CHARS = 1 << 20
MOST_REASON = 20_000
"""Characters of one reasoning that are kept."""
MOST_NUMBER = 1_000_000
"""No answer of ours needs a larger one."""
_FENCED = re.compile(r"\A```[A-Za-z]*[ \t]*\n(.*)\n[ \t]*```\Z", re.DOTALL)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def read_object(text: str) -> dict[str, Any]:
    """Return the one object of the answer. Raises InvalidVote ``empty``, ``too_long``, ``not_json``, ``bad_number``."""
    if len(text) > MOST_CHARS:
        raise InvalidVote("too_long")
    text = text.removeprefix("\ufeff").strip()
    if not text:
        raise InvalidVote("empty")
    fenced = _FENCED.match(text)
    text = fenced[1].strip() if fenced else text
    try:
        found = _parsed(text)
    except NotUsable:
        raise InvalidVote("not_json") from None
    _check_numbers(found)
    return found


def read_answer(text: str, nonce: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return the object, which must repeat the question's number and have exactly these keys beside it.

    Raises InvalidVote, also ``nonce_missing``, ``schema``.
    """
    found = read_object(text)
    if found.get("nonce") != nonce:
        raise InvalidVote("nonce_missing")
    return exactly({name: value for name, value in found.items() if name != "nonce"}, keys)


def exactly(value: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return an object of exactly these keys. Raises InvalidVote ``schema``."""
    if not isinstance(value, dict):
        raise InvalidVote("schema")
    found = cast(dict[str, Any], value)
    if set(found) != set(keys):
        raise InvalidVote("schema")
    return found


def boolean(value: Any) -> bool:
    """Return true or false; ``"false"``, 0 and null are neither. Raises InvalidVote ``schema``."""
    if not isinstance(value, bool):
        raise InvalidVote("schema")
    return value


def whole(value: Any, low: int, high: int) -> int:
    """Return a whole number of a range. Raises InvalidVote ``schema``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidVote("schema")
    return value


def words(value: Any, most: int = MOST_REASON) -> str:
    """Return a text as it can be stored, cut at ``most`` characters. Raises InvalidVote ``schema``."""
    if not isinstance(value, str):
        raise InvalidVote("schema")
    return clean_str(value[:most])[0]


def objects(value: Any, count: int) -> list[Any]:
    """Return a list of exactly so many items. Raises InvalidVote ``schema``, ``wrong_count``."""
    if not isinstance(value, list):
        raise InvalidVote("schema")
    found = cast(list[Any], value)
    if len(found) != count:
        raise InvalidVote("wrong_count")
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        return parse_object(text)
    except NotUsable:
        without = _TOKENS.sub(_less, text)
        if without == text:
            raise
        return parse_object(without)


def _less(match: re.Match[str]) -> str:
    """Take a comma before a closing bracket away; one with nothing before it stays, and stays an error."""
    if match[0] != ",":
        return match[0]
    before = match.start() - 1
    while before >= 0 and match.string[before] in " \t\r\n":
        before -= 1
    return "," if match.string[before] in "[{,:" else ""


def _check_numbers(value: Any) -> None:
    if isinstance(value, dict):
        value = list(cast(dict[str, Any], value).values())
    if isinstance(value, list):
        for item in cast(list[Any], value):
            _check_numbers(item)
    elif isinstance(value, int | float) and abs(value) > MOST_NUMBER:
        raise InvalidVote("bad_number")

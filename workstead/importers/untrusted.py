"""Texts and numbers of a source that nobody has checked: JSON that is not quite JSON, and what cannot be stored."""

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from workstead.task_dir import InvalidInput

MAX_JSON_BYTES = 256 << 20
MAX_DIGITS = 30
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Absurd:
    """Stands where the source has Infinity or a number of more digits than anybody means."""

    def __repr__(self) -> str:
        return "a number that is not finite"


ABSURD = Absurd()


def read_json(path: Path, limit: int = MAX_JSON_BYTES) -> Any:
    """Read JSON as Python's own writer makes it: a bare NaN becomes null; Infinity and huge numbers become ABSURD.

    Numbers with a fraction become Decimal, so that money does not change. Raises InvalidInput, OSError.
    """
    # Opening a pipe would wait for somebody who writes.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        known = os.fstat(file.fileno())
        if not stat.S_ISREG(known.st_mode):
            raise InvalidInput(path, ["is not a regular file"])
        # A file may grow meanwhile; to ask for the limit would reserve as much for the smallest of them.
        data = file.read(known.st_size + 1) if known.st_size <= limit else b""
    if max(known.st_size, len(data)) > limit:
        raise InvalidInput(path, [f"is longer than {limit} bytes"])
    try:
        return parse_json(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(path, [f"is not JSON: {error}"]) from error


def parse_json(data: bytes) -> Any:
    """Parse as :func:`read_json` does. Raises ValueError, RecursionError."""
    text = data.decode("utf-8-sig")
    return json.loads(text, parse_constant=_constant, parse_int=_int, parse_float=_decimal)


@dataclass(frozen=True, slots=True)
class Broken:
    """Stands where an element of an array is not JSON."""

    why: str


def read_elements(path: Path, limit: int = MAX_JSON_BYTES) -> Any:
    """Read JSON as :func:`read_json` does; of an array that is not JSON to its end, what can be read of its elements.

    Raises InvalidInput, OSError.
    """
    try:
        return read_json(path, limit)
    except InvalidInput as error:
        found = parse_elements(path.read_bytes()) if path.is_file() and path.stat().st_size <= limit else []
        if any(not isinstance(element, Broken) for element in found):
            return found
        raise error from None


def parse_elements(data: bytes) -> list[Any]:
    """Return the elements of an array, each that is not JSON as :class:`Broken`; none where there is no array.

    What is not UTF-8 stays visible as a lone surrogate.
    """
    text = data.decode("utf-8-sig", "surrogateescape")
    decoder = json.JSONDecoder(parse_constant=_constant, parse_int=_int, parse_float=_decimal)
    found: list[Any] = []
    at = _past(text, 0)
    while at < len(text) and text[at] == ("," if found else "["):
        start = _past(text, at + 1)
        try:
            element, at = decoder.raw_decode(text, start)
            at = _past(text, at)
            if text[at : at + 1] not in (",", "]"):
                raise ValueError("neither another element nor the array's end follows")
        except (ValueError, RecursionError) as error:
            element, at = Broken(str(error)), _end(text, start)
        found.append(element)
    return found


def _end(text: str, at: int) -> int:
    """Return where the element that begins at ``at`` ends, as far as brackets and quotes tell."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in ("[", "{"):
            depth += 1
        elif depth and token[0] in ("]", "}"):
            depth -= 1
        elif not depth and token[0] in ("]", "}", ","):
            return token.start()
    return len(text)


def _past(text: str, at: int) -> int:
    """Return where ``text`` goes on behind blanks."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _constant(name: str) -> Absurd | None:
    return None if name == "NaN" else ABSURD


def _int(digits: str) -> int | Absurd:
    return int(digits) if len(digits) <= MAX_DIGITS else ABSURD


def _decimal(digits: str) -> Decimal | Absurd:
    value = float(digits)
    if not math.isfinite(value):
        return ABSURD
    # An exponent would let twelve characters stand for a number of a billion digits.
    plain = len(digits) <= MAX_DIGITS and "e" not in digits.lower()
    return Decimal(digits) if plain else Decimal(repr(value))


def absurdities(value: Any, where: str = "") -> Iterator[str]:
    """Yield the pointer of each ABSURD within a parsed value."""
    stack: list[tuple[str, Any]] = [(where, value)]
    while stack:
        at, node = stack.pop()
        if isinstance(node, Absurd):
            yield at
        elif isinstance(node, dict):
            stack += [(f"{at}/{key}", child) for key, child in cast("dict[str, Any]", node).items()]
        elif isinstance(node, list):
            stack += [(f"{at}/{i}", child) for i, child in enumerate(cast("list[Any]", node))]


def unstorable(value: Any) -> bool:
    """Tell whether a text within ``value`` has a NUL or a lone surrogate, which no database text can hold."""
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str) and _UNSTORABLE.search(node):
            return True
        if isinstance(node, dict):
            stack += [part for pair in cast("dict[str, Any]", node).items() for part in pair]
        elif isinstance(node, list):
            stack += cast("list[Any]", node)
    return False


def storable(text: str, limit: int) -> str:
    """Return ``text`` cut to ``limit`` characters, with what no database text can hold replaced."""
    return _UNSTORABLE.sub("\ufffd", text[:limit])

"""Narrowing of foreign JSON: what is not of the wanted shape counts as absent."""

import base64
from typing import Any, cast

_STANDARD = str.maketrans("-_", "+/")


def mapping(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [cast(dict[str, Any], item) for item in items(value) if isinstance(item, dict)]


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def from_base64(data: str) -> bytes:
    """Read either alphabet: Google's SDK writes the one that is safe in URLs. Raises ValueError."""
    return base64.b64decode(data.translate(_STANDARD), validate=True)


def joined(content: object) -> str:
    """Return the text of a message's content: a string, or a list of parts with ``text``."""
    if isinstance(content, str):
        return content
    return "\n".join(text(part.get("text")) for part in objects(content) if text(part.get("text")))

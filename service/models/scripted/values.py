"""Narrowing of foreign JSON: what is not of the wanted shape counts as absent."""

from typing import Any, cast


def mapping(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [cast(dict[str, Any], item) for item in items(value) if isinstance(item, dict)]


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def joined(content: object) -> str:
    """Return the text of a message's content: a string, or a list of parts with ``text``."""
    if isinstance(content, str):
        return content
    return "\n".join(text(part.get("text")) for part in objects(content) if text(part.get("text")))

"""Gemini takes every field in two spellings; a check that knows one of them checks nothing."""

from collections.abc import Mapping
from typing import Any


def plain(key: str) -> str:
    """Return a field's name without its spelling: ``generation_config`` and ``generationConfig`` are one."""
    return key.replace("_", "").lower()


def field(body: Mapping[str, Any], name: str) -> Any:
    """Return the field, however it is spelled; None where it is not."""
    wanted = plain(name)
    for key, value in body.items():
        if plain(key) == wanted:
            return value
    return None


def spellings(body: Mapping[str, Any], name: str) -> list[str]:
    """Return every key of ``body`` that means ``name``."""
    wanted = plain(name)
    return [key for key in body if plain(key) == wanted]

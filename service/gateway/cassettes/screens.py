"""What our loops say of a screen and is chance: whether its picture had come to rest in time. Pure."""

import re
from collections.abc import Mapping
from typing import Any, cast

from service.domain.desktop import RESTLESS

_RESTLESS = re.compile(rf"\n?{re.escape(RESTLESS)}")
_NOTHING = re.compile(r"\s*(?:\(no output\)|Computer call \S+ says:)?\s*")
"""What is left where nothing else was said; some APIs have a word for it, in others the block or message is not there."""
_TEXTS = ("text", "input_text")


def without_chance(value: Any) -> Any:
    """Return a body without that word, and without what is said only where there is something to say."""
    if isinstance(value, str):
        text = _RESTLESS.sub("", value)
        return "" if _NOTHING.fullmatch(text) else text
    if isinstance(value, list):
        kept = [without_chance(one) for one in cast("list[Any]", value)]
        return [one for one in kept if not _says_nothing(one)]
    if isinstance(value, Mapping):
        return {key: without_chance(one) for key, one in cast("Mapping[str, Any]", value).items()}
    return value


def _says_nothing(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    found = cast("Mapping[str, Any]", value)
    if found.get("type") in _TEXTS:
        return found.get("text") == ""
    return set(found) == {"role", "content"} and found["content"] == []

"""Careful looks into JSON that a stranger wrote."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from service.gateway.dialects.contract import BadBody, ServerTool

_MOST_TOKENS = 1 << 40
_ENCODED = 4096
"""A string of this length without a blank is a picture or a file, not text."""
_ENCODED_TOKENS = 1600


def mapping(value: object) -> Mapping[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """Return ``value`` if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def kind_of(value: Mapping[str, Any]) -> str:
    """Return the object's ``type``; empty where it is no text."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def text(value: object, most: int = 200) -> str | None:
    """Return a short string as it is, anything else as None."""
    return value if isinstance(value, str) and 0 < len(value) <= most else None


def count(value: object) -> int | None:
    """Return a number of tokens, or None for what is none."""
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return cast("int", value) if ok else None


def requested_model(body: Mapping[str, Any]) -> str:
    """Raises BadBody."""
    model = text(body.get("model"))
    if model is None:
        raise BadBody("model: a model's name is required")
    return model


def flag(body: Mapping[str, Any], name: str) -> bool:
    """Return an optional boolean. Raises BadBody."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadBody(f"{name}: true or false is required")
    return value is True


def bound(value: object, name: str) -> int | None:
    """Return an optional limit of tokens. Raises BadBody."""
    if value is None:
        return None
    found = count(value)
    if found is None:
        raise BadBody(f"{name}: a whole number of tokens is required")
    return found


def estimated_tokens(body: object) -> int:
    """Guess the input's tokens: a quarter of its text's length; encoded files by a flat rate."""
    letters = encoded = 0
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if len(value) >= _ENCODED and " " not in value[:_ENCODED]:
                encoded += 1
            else:
                letters += len(value)
        elif isinstance(value, Mapping):
            some = cast("Mapping[str, Any]", value)
            letters += sum(map(len, some))
            waiting.extend(some.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))
        else:
            letters += 4
    return letters // 4 + encoded * _ENCODED_TOKENS


def refuse(tools: Sequence[ServerTool]) -> None:
    """Raises BadBody that names the tools, if there are any."""
    if tools:
        names = ", ".join(dict.fromkeys(tool.name for tool in tools))
        raise BadBody(f"provider-side tools are not allowed in this run: {names}")


def host_matches(pattern: str, domain: str) -> bool:
    """Tell whether a denied host pattern and a search domain (which stands for its subdomains too) touch each other."""
    denied, domain = pattern.removeprefix("*."), domain.lower().split("/", 1)[0].removeprefix("*.").rstrip(".")
    return denied == domain or denied.endswith("." + domain) or domain.endswith("." + denied)

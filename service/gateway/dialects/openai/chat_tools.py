"""What of a Chat Completions request the provider would do itself."""

from collections.abc import Sequence
from typing import Any

from service.gateway.dialects.contract import Policy, ServerTool
from service.gateway.dialects.reading import kind_of, mapping
from service.gateway.dialects.sieve import REMOVED, REMOVED_URL, URL_SOURCE, Entry, Path, Sieve, replace, walk

_CLIENT = frozenset({"function", "custom"})
_FIELDS = ("web_search_options", "plugins", "search_parameters", "enable_search", "web_search")
"""Searches that are switched on beside the tools; the first is OpenAI's, the others are of those who speak like it."""


def sift(body: dict[str, Any], policy: Policy) -> tuple[dict[str, Any], Sequence[ServerTool]]:
    """Return the body as it may leave and what was taken out. Raises BadBody."""
    new, sieve = dict(body), Sieve(policy)
    if "tools" in new:
        replace(new, "tools", walk(new["tools"], ("tools",), lambda e, at: _tool(e, at, sieve), frozenset()))
    for name in _FIELDS:
        # An empty object switches it on too.
        if new.get(name) not in (None, False, []) and _denied(name, new[name], sieve):
            del new[name]
    if "messages" in new:
        edited = walk(new["messages"], ("messages",), lambda p, at: _part(p, at, sieve), frozenset({"content"}))
        new["messages"] = edited
    if sieve.removed and "tools" not in new and "functions" not in new:
        new.pop("tool_choice", None)
    return sieve.result(new)


def _tool(entry: Entry, at: Path, sieve: Sieve) -> Any:
    kind = kind_of(entry)
    if kind in _CLIENT:
        return entry
    return sieve.judge(f"unknown:{kind[:64] or '?'}", entry, at)


def _denied(name: str, value: object, sieve: Sieve) -> bool:
    return sieve.judge(name, mapping(value), (name,), lambda _entry, _hosts: None) is REMOVED


def _part(part: Entry, at: Path, sieve: Sieve) -> Any:
    image = part.get("image_url")
    if sieve.fetches(image if isinstance(image, str) else mapping(image).get("url")):
        sieve.drop(URL_SOURCE, at)
        return {"type": "text", "text": REMOVED_URL}
    return part

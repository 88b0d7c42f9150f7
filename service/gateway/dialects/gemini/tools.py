"""What of a Gemini request the provider would do itself."""

from collections.abc import Sequence
from typing import Any

from service.gateway.dialects.contract import Policy, ServerTool
from service.gateway.dialects.gemini.names import field, plain, spellings
from service.gateway.dialects.reading import mapping
from service.gateway.dialects.sieve import REMOVED, REMOVED_URL, URL_SOURCE, Entry, Path, Sieve, replace, walk

_CLIENT = frozenset({"functiondeclarations", "computeruse"})
_SERVER = {
    plain(name): name
    for name in (
        "google_search", "google_search_retrieval", "google_maps", "url_context", "code_execution", "file_search",
        "enterprise_web_search", "retrieval", "mcp_servers", "parallel_ai_search", "exa_ai_search",
    )
}  # fmt: skip
_OFFLINE = frozenset({"codeexecution", "filesearch", "retrieval"})
"""They reach no host that could be denied; the others cannot be kept from one in this API."""
_INSIDE = frozenset({"parts", "functionResponse", "function_response"})
_CONTENT = ("contents", "systemInstruction")


def sift(body: dict[str, Any], policy: Policy) -> tuple[dict[str, Any], Sequence[ServerTool]]:
    """Return the body as it may leave and what was taken out. Raises BadBody."""
    new, sieve = dict(body), Sieve(policy)
    for key in spellings(new, "tools"):
        replace(new, key, walk(new[key], (key,), lambda entry, at: _tool(entry, at, sieve), frozenset()))
    for name in _CONTENT:
        for key in spellings(new, name):
            new[key] = walk(new[key], (key,), lambda part, at: _part(part, at, sieve), _INSIDE)
    if sieve.removed and not spellings(new, "tools"):
        for key in spellings(new, "toolConfig"):
            del new[key]
    return sieve.result(new)


def _tool(entry: Entry, at: Path, sieve: Sieve) -> Any:
    """A tool object carries several kinds at once, one per key."""
    kept = {
        key: value
        for key, value in entry.items()
        if plain(key) in _CLIENT or _judged(key, value, at, sieve) is not REMOVED
    }
    return entry if len(kept) == len(entry) else kept or REMOVED


def _judged(key: str, value: object, at: Path, sieve: Sieve) -> object:
    name = _SERVER.get(plain(key), f"unknown:{key[:64]}")
    reaches_out = plain(key) not in _OFFLINE
    return sieve.judge(name, mapping(value), (*at, key), (lambda _entry, _hosts: None) if reaches_out else None)


def _part(part: Entry, at: Path, sieve: Sieve) -> Any:
    source = mapping(field(part, "fileData"))
    if sieve.fetches(field(source, "fileUri")):
        sieve.drop(URL_SOURCE, at)
        return {"text": REMOVED_URL}
    return part

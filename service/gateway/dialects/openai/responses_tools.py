"""What of a Responses request the provider would do itself. Tools also arrive inside input items (Codex)."""

import re
from collections.abc import Sequence
from typing import Any

from service.gateway.dialects.contract import Policy, ServerTool
from service.gateway.dialects.reading import items, kind_of, mapping
from service.gateway.dialects.sieve import (
    REMOVED,
    REMOVED_URL,
    URL_SOURCE,
    Entry,
    Path,
    Sieve,
    replace,
    walk,
    without_denied,
)

_CLIENT = frozenset({
    "function", "custom", "local_shell", "apply_patch", "computer", "computer_use", "computer_use_preview", "namespace",
    "tool_search",
})  # fmt: skip
_WEB = re.compile(r"web_search(_preview)?(_\d{4}_\d{2}_\d{2})?")
_SERVER = frozenset({
    "file_search", "code_interpreter", "image_generation", "mcp", "programmatic_tool_calling", "shell",
})  # fmt: skip
_TOOL_ITEMS = frozenset({"additional_tools", "tool_search_output", "namespace"})
_INSIDE = frozenset({"content", "output", "tools"})


def sift(body: dict[str, Any], policy: Policy) -> tuple[dict[str, Any], Sequence[ServerTool]]:
    """Return the body as it may leave and what was taken out. Raises BadBody."""
    new, sieve = dict(body), Sieve(policy)
    if "tools" in new:
        replace(new, "tools", _tools(new["tools"], ("tools",), sieve))
    if isinstance(new.get("input"), list):
        new["input"] = walk(new["input"], ("input",), lambda item, at: _item(item, at, sieve), _INSIDE)
    # A stored prompt brings its own tools, which are not in this body.
    if new.get("prompt") and sieve.judge("stored_prompt", mapping(new["prompt"]), ("prompt",)) is REMOVED:
        del new["prompt"]
    _forget(new, sieve)
    return sieve.result(new)


def server_tool(entry: Entry) -> str | None:
    """Return the provider-side tool's name, or None for one that the client runs."""
    kind = kind_of(entry)
    if kind in _CLIENT or (kind == "shell" and _is_local(entry)):
        return None
    return kind if kind in _SERVER or _WEB.fullmatch(kind) else f"unknown:{kind[:64] or '?'}"


def _is_local(entry: Entry) -> bool:
    environment = entry.get("environment")
    return environment is None or mapping(environment).get("type") == "local"


def _tools(value: object, at: Path, sieve: Sieve) -> Any:
    return walk(value, at, lambda entry, where: _tool(entry, where, sieve), frozenset({"tools"}))


def _tool(entry: Entry, at: Path, sieve: Sieve) -> Any:
    name = server_tool(entry)
    if name is None:
        # Where it runs is said aloud, so that no default of the provider's decides.
        bare_shell = entry.get("type") == "shell" and entry.get("environment") is None
        return {**entry, "environment": {"type": "local"}} if bare_shell else entry
    return sieve.judge(name, entry, at, _restricted if _WEB.fullmatch(name) else None)


def _restricted(entry: Entry, denied: Sequence[str]) -> Entry | None:
    """Only a list of allowed domains keeps this search away from any host."""
    filters = mapping(entry.get("filters"))
    kept = without_denied(filters.get("allowed_domains"), denied)
    return None if kept is None else {**entry, "filters": {**filters, "allowed_domains": kept}}


def _item(item: Entry, at: Path, sieve: Sieve) -> Any:
    if kind_of(item) in _TOOL_ITEMS:
        return {**item, "tools": _tools(item.get("tools"), (*at, "tools"), sieve)} if "tools" in item else item
    if _in_tools(at):
        return item
    for key in ("image_url", "file_url"):
        if sieve.fetches(item.get(key)):
            sieve.drop(URL_SOURCE, at)
            if kind_of(item) in {"input_image", "input_file"}:
                return {"type": "input_text", "text": REMOVED_URL}
            return {k: v for k, v in item.items() if k != key}
    return item


def _in_tools(at: Path) -> bool:
    return "tools" in at


def _forget(body: dict[str, Any], sieve: Sieve) -> None:
    """Take out what refers to entries that are gone."""
    if not sieve.removed:
        return
    gone = {_family(tool.name) for tool in sieve.removed}
    if "include" in body:
        kept = [i for i in items(body["include"]) if str(i).split("_call", 1)[0] not in gone or "_call" not in str(i)]
        body["include"] = kept
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        if choice == "required" and "tools" not in body:
            del body["tool_choice"]
    elif choice is not None:
        _choose(body, mapping(choice), gone)


def _choose(body: dict[str, Any], choice: Entry, gone: set[str]) -> None:
    if "tools" not in body or _names(choice, gone):
        del body["tool_choice"]
    elif choice.get("type") == "allowed_tools":
        kept = [tool for tool in items(choice.get("tools")) if not _names(mapping(tool), gone)]
        if kept:
            body["tool_choice"] = {**choice, "tools": kept}
        else:
            del body["tool_choice"]


def _names(choice: Entry, gone: set[str]) -> bool:
    return _family(kind_of(choice)) in gone


def _family(name: str) -> str:
    return "web_search" if _WEB.fullmatch(name) else name

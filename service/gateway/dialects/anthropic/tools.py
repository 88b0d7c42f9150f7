"""What of a Messages request the provider would do itself."""

import re
from collections.abc import Sequence
from typing import Any

from service.gateway.dialects.contract import Policy, ServerTool
from service.gateway.dialects.reading import items, kind_of, mapping
from service.gateway.dialects.sieve import (
    REMOVED_URL,
    URL_SOURCE,
    Edit,
    Entry,
    Path,
    Sieve,
    replace,
    walk,
    without_denied,
)

_CLIENT = re.compile(r"custom|(bash|text_editor|computer|memory|computer_toolset|browser_toolset)_\d{8}")
_HARMLESS = re.compile(r"tool_search_tool_(regex|bm25)(_\d{8})?")
"""Run by the provider over the request's own tools; nothing leaves."""
_SERVER = re.compile(r"(web_search|web_fetch|code_execution|advisor)_\d{8}|mcp_toolset")
_WEB = re.compile(r"web_(search|fetch)_\d{8}")


def sift(body: dict[str, Any], policy: Policy) -> tuple[dict[str, Any], Sequence[ServerTool]]:
    """Return the body as it may leave and what was taken out. Raises BadBody."""
    new, sieve = dict(body), Sieve(policy)
    edits: dict[str, Edit] = {"tools": _tool(sieve), "mcp_servers": _mcp_server(sieve), "messages": _block(sieve)}
    for key, edit in edits.items():
        if key in new:
            replace(new, key, walk(new[key], (key,), edit, frozenset({"content", "source"})))
    if new.pop("fallbacks", None):
        # Another model answers and costs, which the grant does not name.
        sieve.drop("fallbacks", ("fallbacks",))
    _forget(new, sieve)
    return sieve.result(new)


def server_tool(entry: Entry) -> str | None:
    """Return the provider-side tool's name, or None for one that the client runs."""
    if entry.get("type") is None:
        return None
    kind = kind_of(entry)
    if _CLIENT.fullmatch(kind) or _HARMLESS.fullmatch(kind):
        return None
    return kind if _SERVER.fullmatch(kind) else f"unknown:{kind[:64] or '?'}"


def _tool(sieve: Sieve) -> Edit:
    def edit(entry: Entry, at: Path) -> Any:
        name = server_tool(entry)
        if name is None:
            return entry
        return sieve.judge(name, entry, at, _restricted if _WEB.fullmatch(name) else None)

    return edit


def _mcp_server(sieve: Sieve) -> Edit:
    def edit(entry: Entry, at: Path) -> Any:
        return sieve.judge("mcp_server", entry, at)

    return edit


def _restricted(entry: Entry, denied: Sequence[str]) -> Entry | None:
    hosts = [host.removeprefix("*.") for host in denied]
    if entry.get("allowed_domains"):
        kept = without_denied(entry["allowed_domains"], denied)
        return None if kept is None else {**entry, "allowed_domains": kept}
    blocked = [d for d in items(entry.get("blocked_domains")) if isinstance(d, str)]
    return {**entry, "blocked_domains": list(dict.fromkeys((*blocked, *hosts)))}


def _block(sieve: Sieve) -> Edit:
    tool = _tool(sieve)

    def edit(block: Entry, at: Path) -> Any:
        match block.get("type"):
            case "image" | "document":
                source = mapping(block.get("source"))
                if source.get("type") == "url" and sieve.fetches(source.get("url")):
                    sieve.drop(URL_SOURCE, at)
                    return {"type": "text", "text": REMOVED_URL}
            case "tool_addition":
                return _addition(block, at, sieve, tool)
            case _:
                pass
        return block

    return edit


def _addition(block: Entry, at: Path, sieve: Sieve, tool: Edit) -> Any:
    added = mapping(block.get("tool"))
    match added.get("type"):
        case "tool_definition":
            kept = tool(mapping(added.get("definition")), (*at, "tool", "definition"))
            return {**block, "tool": {**added, "definition": kept}} if isinstance(kept, dict) else kept
        case "mcp_tool_reference" | "mcp_toolset_reference":
            return sieve.judge("mcp_toolset", block, at)
        case _:
            return block


def _forget(body: dict[str, Any], sieve: Sieve) -> None:
    """Take out what refers to entries that are gone."""
    if not sieve.removed:
        return
    choice = mapping(body.get("tool_choice"))
    if choice and ("tools" not in body or choice.get("name") in sieve.names):
        del body["tool_choice"]
    if any(tool.name.startswith("code_execution_") for tool in sieve.removed):
        body.pop("container", None)
        if "tools" in body:
            body["tools"] = [_called_directly(entry) for entry in items(body["tools"])]


def _called_directly(entry: Any) -> Any:
    callers = mapping(entry).get("allowed_callers")
    if callers is None:
        return entry
    kept = [c for c in items(callers) if not (isinstance(c, str) and c.startswith("code_execution_"))]
    rest = {key: value for key, value in mapping(entry).items() if key != "allowed_callers"}
    return {**rest, "allowed_callers": kept} if kept else rest

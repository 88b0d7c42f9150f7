"""The tools as the model is told of them, and the checking of what it asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.models.messages import ToolSpec

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 120, 1800
MAX_ARGUMENT_CHARS = 2_000_000


def _schema(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _words(kind: dict[str, Any], description: str) -> dict[str, Any]:
    return {**kind, "description": description}


_TIMEOUT = _words(NUMBER, f"Seconds until it is killed; default {DEFAULT_TIMEOUT_S}, at most {MAX_TIMEOUT_S}.")
_PATH = _words(TEXT, "Absolute, or relative to /workspace.")


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    alone: bool
    """It changes something: calls of one answer are then done one after the other, in their order."""


def _tool(name: str, description: str, parameters: dict[str, Any], *, alone: bool = False) -> Tool:
    return Tool(ToolSpec(name, description, parameters), alone)


SANDBOX = {
    tool.spec.name: tool
    for tool in (
        _tool(
            "bash",
            "Run a command in a shell of the sandbox. Working directory and exported variables are kept from call to "
            "call. Programs left in the background (with &) go on running. Of long output the beginning and the end are "
            "shown.",
            _schema(["command"], command=TEXT, timeout_s=_TIMEOUT),
            alone=True,
        ),
        _tool(
            "python",
            "Run a Python program in the sandbox, in a new interpreter, in the shell's working directory. Print what you "
            "want to see.",
            _schema(["code"], code=TEXT, timeout_s=_TIMEOUT),
            alone=True,
        ),
        _tool(
            "read_file",
            "Read a text file, with line numbers.",
            _schema(
                ["path"],
                path=_PATH,
                offset=_words(NUMBER, "First line, from 1."),
                limit=_words(NUMBER, "Most lines; default 2000."),
            ),
        ),
        _tool(
            "write_file",
            "Write a text file whole; folders are made where missing.",
            _schema(["path", "content"], path=_PATH, content=TEXT),
            alone=True,
        ),
        _tool(
            "edit_file",
            "Replace a piece of text in a file. old_text must occur exactly once unless replace_all is true.",
            _schema(
                ["path", "old_text", "new_text"],
                path=_PATH,
                old_text=TEXT,
                new_text=TEXT,
                replace_all={"type": "boolean"},
            ),
            alone=True,
        ),
        _tool(
            "list_files",
            "List a folder with sizes.",
            _schema([], path=_PATH, depth=_words(NUMBER, "Levels of folders; default 2.")),
        ),
        _tool("view_image", "Look at an image file (png, jpeg, gif or webp).", _schema(["path"], path=_PATH)),
    )
}
WEB_SEARCH = _tool("web_search", "Search the web.", _schema(["query"], query=TEXT, count=NUMBER))
WEB_FETCH = _tool("web_fetch", "Fetch a page of the web as text.", _schema(["url"], url=TEXT))
MESSAGE_CLIENT = _tool(
    "message_client",
    "Ask the client of this job a question. You may attach text files by their content.",
    _schema(
        ["text"],
        text=TEXT,
        attachments={
            "type": "array",
            "items": _schema(["name", "content"], name=TEXT, content=TEXT),
            "description": "Text files.",
        },
    ),
    alone=True,
)
SERVICES = {"search": WEB_SEARCH, "fetch": WEB_FETCH}
"""Gateway service that the agent's settings name → tool that it makes possible."""
NAMES = frozenset({*SANDBOX, "web_search", "web_fetch", "message_client"})

_TYPES: Mapping[str, type | tuple[type, ...]] = {"string": str, "boolean": bool, "array": list, "object": dict}


def problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a call's arguments, in words for the model; null: nothing."""
    properties: dict[str, dict[str, Any]] = schema["properties"]
    missing = [name for name in schema["required"] if name not in arguments]
    if missing:
        return f"argument {missing[0]!r} is missing"
    for name, value in arguments.items():
        wanted = properties.get(name)
        if wanted is None:
            return f"there is no argument {name[:80]!r}; known: {', '.join(properties)}"
        if not _fits(wanted["type"], value):
            return f"argument {name!r} must be of type {wanted['type']}"
        if isinstance(value, str) and len(value) > MAX_ARGUMENT_CHARS:
            return f"argument {name!r} has more than {MAX_ARGUMENT_CHARS} characters"
    return None


def _fits(kind: str, value: Any) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53
    return isinstance(value, _TYPES[kind])

"""How a tool is described to a model, and the checking of what the model asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.models.messages import ToolSpec

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
MAX_ARGUMENT_CHARS = 2_000_000
_TYPES: Mapping[str, type | tuple[type, ...]] = {"string": str, "boolean": bool, "array": list, "object": dict}


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    alone: bool
    """It changes something: calls of one answer are then done one after the other, in their order."""


def schema(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def words(kind: dict[str, Any], description: str) -> dict[str, Any]:
    return {**kind, "description": description}


def tool(name: str, description: str, parameters: dict[str, Any], *, alone: bool = False) -> Tool:
    return Tool(ToolSpec(name, description, parameters), alone)


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

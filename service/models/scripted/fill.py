"""Values for the parameters that a tool's JSON schema requires and a scenario says nothing of."""

from collections.abc import Mapping
from typing import Any

from service.models.scripted.values import items, mapping, text

_DEPTH = 8


def filled(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``given`` and a plausible value for each further required property."""
    properties = mapping(schema.get("properties"))
    missing = [name for name in items(schema.get("required")) if isinstance(name, str) and name not in given]
    return dict(given) | {name: value(mapping(properties.get(name)), schema) for name in missing}


def value(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a small value that ``schema`` allows; references are looked up in ``root``."""
    if depth > _DEPTH:
        return None
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if options := items(schema.get("enum")):
        return options[0]
    for several in ("anyOf", "oneOf"):
        if options := items(schema.get(several)):
            return value(mapping(options[0]), root, depth + 1)
    return _by_type(schema, root, depth)


def _by_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    kind = text(items(kind)[0] if items(kind) else kind).lower()
    if kind == "object" or (not kind and "properties" in schema):
        properties = mapping(schema.get("properties"))
        required = [name for name in items(schema.get("required")) if isinstance(name, str)]
        return {name: value(mapping(properties.get(name)), root, depth + 1) for name in required}
    if kind in {"integer", "number"}:
        return schema.get("minimum", 0)
    if kind == "array":
        return [value(mapping(schema.get("items")), root, depth + 1)] * int(schema.get("minItems", 0))
    return {"boolean": False, "null": None}.get(kind, "scripted")


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = text(schema.get("$ref"))
    if not reference.startswith("#/"):
        return schema
    found: Mapping[str, Any] = root
    for part in reference[2:].split("/"):
        found = mapping(found.get(part))
    return found

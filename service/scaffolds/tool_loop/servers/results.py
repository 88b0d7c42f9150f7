"""What a server says of its tools and of a call: untrusted, so checked and bounded before a model is told."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.models.messages import ToolSpec
from service.scaffolds.reading import Object, obj, objects, text
from service.scaffolds.tool_loop.images import media_type
from service.scaffolds.tool_loop.schema import Tool
from service.scaffolds.tool_loop.servers.settings import McpServer

MOST_TOOLS = 64
"""Of one server."""
MOST_LISTED = 1000
DESCRIPTION_CHARS = 2000
SCHEMA_CHARS, SCHEMAS_CHARS = 16_000, 64_000
"""Of one tool, and of all of a server."""
RESULT_CHARS = 30_000
"""Half of it from the beginning, half from the end."""
MOST_IMAGES = 4
IMAGE_CHARS = 3_800_000
NAME_CHARS = 64
"""Most that every provider takes."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def chosen(server: McpServer, listed: Sequence[Object]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tools that are offered (``name``, ``description``, ``schema``, ``reads``), and why others are not."""
    found: list[dict[str, Any]] = []
    left_out: list[str] = []
    size = 0
    for one in listed[:MOST_LISTED]:
        name, schema = text(one.get("name")), obj(one.get("inputSchema"))
        if not name or not server.offers(name):
            continue
        length = len(json.dumps(schema))
        why = _why_not(schema, length, size + length, len(found))
        if why is not None:
            left_out.append(f"{name[:100]}: {why}")
            continue
        size += length
        reads = obj(one.get("annotations")).get("readOnlyHint") is True
        description = text(one.get("description"))[:DESCRIPTION_CHARS]
        found.append({"name": name, "description": description, "schema": dict(schema), "reads": reads})
    return found, left_out[:MOST_TOOLS]


def _why_not(schema: Object, length: int, total: int, count: int) -> str | None:
    if schema.get("type") != "object":
        return "its arguments are no object"
    if length > SCHEMA_CHARS:
        return f"its schema has more than {SCHEMA_CHARS} characters"
    if total > SCHEMAS_CHARS:
        return f"all schemas together have more than {SCHEMAS_CHARS} characters"
    return f"the server has more than {MOST_TOOLS} tools" if count >= MOST_TOOLS else None


def as_tool(server: str, found: Mapping[str, Any]) -> Tool:
    schema: dict[str, Any] = {"properties": {}, **found["schema"]}
    return Tool(ToolSpec(offered_name(server, found["name"]), found["description"], schema), alone=not found["reads"])


def offered_name(server: str, tool: str) -> str:
    """Return the name under which a model knows a server's tool: unlike all others, in letters that providers take."""
    plain = _NOT_IN_NAMES.sub("_", f"mcp__{server}__{tool}")
    if len(plain) <= NAME_CHARS and plain.endswith(tool):
        return plain
    return f"{plain[: NAME_CHARS - 9]}_{hashlib.sha256(tool.encode(errors='replace')).hexdigest()[:8]}"


def told(result: Object) -> dict[str, Any]:
    """Return the value of a call: ``text``, ``is_error``, ``images``."""
    parts: list[str] = []
    images: list[dict[str, str]] = []
    for block in objects(result.get("content")):
        image = _image(block) if len(images) < MOST_IMAGES else None
        if image is not None:
            images.append(image)
        else:
            parts.append(_text(block))
    if not parts and not images and result.get("structuredContent") is not None:
        parts.append(json.dumps(result["structuredContent"], ensure_ascii=False))
    whole = cut("\n".join(parts)) or ("(an image)" if images else "(no output)")
    value: dict[str, Any] = {"text": whole, "is_error": result.get("isError") is True}
    return {**value, "images": images} if images else value


def cut(whole: str) -> str:
    half = RESULT_CHARS // 2
    if len(whole) <= RESULT_CHARS:
        return whole
    return f"{whole[:half]}\n[... {len(whole) - RESULT_CHARS} of {len(whole)} characters are not shown ...]\n{whole[-half:]}"


def _text(block: Object) -> str:
    kind = text(block.get("type"))
    if kind == "text":
        return text(block.get("text"))
    inner = obj(block.get("resource")) or block
    shown = text(inner.get("text")) or text(inner.get("uri"))
    return shown if kind.startswith("resource") and shown else f"[{kind[:40] or 'something'} that cannot be shown]"


def _image(block: Object) -> dict[str, str] | None:
    data = text(block.get("data"))
    if block.get("type") != "image" or len(data) > IMAGE_CHARS:
        return None
    kind = media_type(data)
    return None if kind is None else {"media_type": kind, "data": data}

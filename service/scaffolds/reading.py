"""What the line parsers of programs share: values out of untrusted JSON, and the events that they become."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from service.domain.events import EventType
from service.domain.json_objects import parse_object
from service.domain.models import TokenUsage
from service.scaffolds.contract import AgentReport, Translated

Object = Mapping[str, Any]
MAX_TOKENS = 10**12
MAX_REASON = 200


def object_of(line: bytes) -> Object | None:
    """Return the line's JSON object if a database can hold it, else None."""
    return parse_object(line)


def obj(value: Any) -> Object:
    return cast(Object, value) if isinstance(value, dict) else {}


def objects(value: Any) -> list[Object]:
    return [obj(one) for one in cast(list[Any], value) if isinstance(one, dict)] if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    return [one for one in cast(list[Any], value) if isinstance(one, str)] if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def number(value: Any) -> int:
    """Return a count that a database can hold; what is none counts as nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(max(0, int(value)), MAX_TOKENS)


def dollars(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_TOKENS:
        return None
    return Decimal(str(value))


def message(said: str) -> Translated:
    return Translated(EventType.AGENT_MESSAGE, {"text": said})


def thinking(said: str) -> Translated:
    return Translated(EventType.AGENT_THINKING, {"text": said})


def warning(said: str) -> Translated:
    return Translated(EventType.AGENT_WARNING, {"text": said})


def tool_call(id: Any, name: Any, arguments: Any) -> Translated:
    return Translated(EventType.TOOL_CALL, {"id": text(id), "name": text(name), "arguments": arguments})


def tool_result(id: Any, output: Any, *, is_error: bool) -> Translated:
    return Translated(EventType.TOOL_RESULT, {"id": text(id), "output": output, "is_error": is_error})


def usage(tokens: TokenUsage, cost_usd: Decimal | None = None) -> Translated:
    payload: dict[str, Any] = tokens.model_dump()
    if cost_usd is not None:
        payload["cost_usd"] = str(cost_usd)
    return Translated(EventType.AGENT_USAGE, payload)


def final(report: AgentReport) -> Translated:
    return Translated(
        EventType.AGENT_FINAL, {"status": report.status, "text": report.text, "reason": report.reason[:MAX_REASON]}
    )


def joined(blocks: Any) -> str:
    """Return the text of a content that is a string or a list of blocks with ``text``."""
    if isinstance(blocks, str):
        return blocks
    found: Sequence[str] = [text(block.get("text")) for block in objects(blocks)]
    return "\n".join(part for part in found if part)

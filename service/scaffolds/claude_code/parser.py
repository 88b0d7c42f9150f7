"""Lines of ``claude -p --output-format stream-json --verbose``."""

from collections.abc import Sequence
from typing import Literal

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, objects, strings, text

_LIMITS = {"error_max_turns": "max_turns", "error_max_budget_usd": "max_budget"}


class ClaudeCodeParser:
    def __init__(self) -> None:
        self._report = AgentReport()

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        if value is None:
            return ()
        match value.get("type"):
            case "assistant":
                return _said(value)
            case "user":
                return _results(value)
            case "system":
                return _system(value)
            case "result":
                return self._result(value)
            case _:
                return ()

    def _result(self, value: Object) -> Sequence[Translated]:
        self._report = _ending(value)
        events = [reading.final(self._report)]
        if self._report.usage is not None:
            events.insert(0, reading.usage(self._report.usage, self._report.cost_usd))
        return events


def _said(value: Object) -> list[Translated]:
    events: list[Translated] = []
    for block in objects(obj(value.get("message")).get("content")):
        match block.get("type"):
            case "text":
                events.append(reading.message(text(block.get("text"))))
            case "thinking":
                events.append(reading.thinking(text(block.get("thinking"))))
            case "tool_use" | "server_tool_use":
                events.append(reading.tool_call(block.get("id"), block.get("name"), block.get("input")))
            case _:
                pass
    return events


def _results(value: Object) -> list[Translated]:
    return [
        reading.tool_result(
            block.get("tool_use_id"), reading.joined(block.get("content")), is_error=block.get("is_error") is True
        )
        for block in objects(obj(value.get("message")).get("content"))
        if block.get("type") == "tool_result"
    ]


def _system(value: Object) -> list[Translated]:
    match value.get("subtype"):
        case "api_retry":
            what = f"request failed ({value.get('error_status')}): try {number(value.get('attempt'))}"
            return [reading.warning(f"{what} of {number(value.get('max_retries'))} follows")]
        case "permission_denied":
            return [reading.warning(f"permission denied: {text(value.get('tool_name')) or 'a tool'}")]
        case _:
            return []


def _ending(value: Object) -> AgentReport:
    kind = text(value.get("subtype"))
    status: Literal["success", "error", "limit"]
    # ``is_error`` decides: an error of the API has the subtype "success".
    if kind in _LIMITS:
        status, reason = "limit", _LIMITS[kind]
    elif value.get("is_error") is False and kind == "success":
        status, reason = "success", text(value.get("terminal_reason")) or "completed"
    else:
        status, reason = "error", text(value.get("terminal_reason")) or kind or "error"
    said = text(value.get("result")) or "\n".join(strings(value.get("errors")))
    return AgentReport(status, said, reason, _usage(value), reading.dollars(value.get("total_cost_usd")))


def _usage(value: Object) -> TokenUsage | None:
    """Return the sum over the run: that of a line of ``assistant`` is what was known when its message began."""
    said = value.get("usage")
    if not isinstance(said, dict):
        return None
    used = obj(said)
    return TokenUsage(
        input_tokens=number(used.get("input_tokens")),
        cached_input_tokens=number(used.get("cache_read_input_tokens")),
        cache_write_tokens=number(used.get("cache_creation_input_tokens")),
        output_tokens=number(used.get("output_tokens")),
        reasoning_tokens=number(obj(used.get("output_tokens_details")).get("thinking_tokens")),
    )

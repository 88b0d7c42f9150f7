"""Lines of ``mini`` with the classes of ``sandbox_images/kits/mini_swe/workstead_mini.py``."""

import json
from collections.abc import Sequence
from typing import Any

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, objects, text

_ENDINGS = {"Submitted": ("success", "completed"), "LimitsExceeded": ("limit", "max_turns")}


class MiniSweParser:
    def __init__(self) -> None:
        self._report = AgentReport()
        self._said = ""
        self._used: TokenUsage | None = None

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        if value is None:
            return ()
        match value.get("workstead"):
            case "message":
                return self._message(obj(value.get("message")), value.get("usage"))
            case "end":
                return self._ended(value)
            case _:
                return ()

    def _message(self, message: Object, usage: Any) -> Sequence[Translated]:
        if isinstance(usage, dict):
            self._used = (self._used or TokenUsage()).plus(_usage(obj(usage)))
            self._report = AgentReport(usage=self._used)
        extra = obj(message.get("extra"))
        match message.get("role"):
            case "assistant":
                return self._assistant(message)
            case "tool":
                code = extra.get("returncode")
                failed = isinstance(code, int) and code != 0
                return [reading.tool_result(message.get("tool_call_id"), _output(message, extra), is_error=failed)]
            case "user" if extra.get("interrupt_type") == "FormatError":
                return [reading.warning(reading.joined(message.get("content")))]
            case _:
                return ()

    def _assistant(self, message: Object) -> Sequence[Translated]:
        events: list[Translated] = []
        if thought := text(message.get("reasoning_content")):
            events.append(reading.thinking(thought))
        if said := reading.joined(message.get("content")):
            self._said = said
            events.append(reading.message(said))
        for call in objects(message.get("tool_calls")):
            function = obj(call.get("function"))
            events.append(reading.tool_call(call.get("id"), function.get("name"), _arguments(function)))
        return events

    def _ended(self, value: Object) -> Sequence[Translated]:
        kind, said = text(value.get("exit_status")), text(value.get("text"))
        match _ENDINGS.get(kind):
            case ("success", reason):
                self._report = AgentReport("success", said or self._said, reason, self._used)
            case ("limit", reason):
                self._report = AgentReport("limit", self._said, reason, self._used)
            case _:
                self._report = AgentReport("error", said, kind or "error", self._used)
        events = [reading.final(self._report)]
        if self._used is not None:
            events.insert(0, reading.usage(self._used))
        return events


def _output(message: Object, extra: Object) -> str:
    raw = text(extra.get("raw_output"))
    trouble = text(extra.get("exception_info"))
    return f"{raw}\n{trouble}".strip() if trouble else raw or reading.joined(message.get("content"))


def _arguments(function: Object) -> Any:
    said = function.get("arguments")
    try:
        return json.loads(said) if isinstance(said, str) else said
    except ValueError:
        return said


def _usage(used: Object) -> TokenUsage:
    """litellm's: the prompt's tokens include those of the cache, whatever the provider's own rule is."""
    asked, answered = obj(used.get("prompt_tokens_details")), obj(used.get("completion_tokens_details"))
    cached, written = number(asked.get("cached_tokens")), number(asked.get("cache_creation_tokens"))
    return TokenUsage(
        input_tokens=max(0, number(used.get("prompt_tokens")) - cached - written),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=number(used.get("completion_tokens")),
        reasoning_tokens=number(answered.get("reasoning_tokens")),
    )

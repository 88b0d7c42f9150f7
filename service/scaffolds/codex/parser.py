"""Lines of ``codex exec --json``."""

from collections.abc import Sequence
from typing import Any

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, text


class CodexParser:
    def __init__(self) -> None:
        self._report = AgentReport()
        self._said = ""
        self._open: set[str] = set()

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        if value is None:
            return ()
        match value.get("type"):
            case "item.started":
                return self._started(obj(value.get("item")))
            case "item.completed":
                return self._completed(obj(value.get("item")))
            case "error":
                return [reading.warning(_message(value))]
            case "turn.completed":
                return self._ended(value)
            case "turn.failed":
                self._report = AgentReport("error", _message(obj(value.get("error"))), "turn_failed")
                return [reading.final(self._report)]
            case _:
                return ()

    def _started(self, item: Object) -> Sequence[Translated]:
        call = _call(item)
        if call is None:
            return ()
        self._open.add(text(item.get("id")))
        return [reading.tool_call(item.get("id"), *call)]

    def _completed(self, item: Object) -> Sequence[Translated]:
        match item.get("type"):
            case "agent_message":
                self._said = text(item.get("text"))
                return [reading.message(self._said)]
            case "reasoning":
                return [reading.thinking(text(item.get("text")))]
            case "error":
                # A warning, whatever it is called: the turn goes on.
                return [reading.warning(_message(item))]
            case _:
                return self._done(item)

    def _done(self, item: Object) -> Sequence[Translated]:
        call, id_ = _call(item), text(item.get("id"))
        if call is None:
            return ()
        begun = [] if id_ in self._open else [reading.tool_call(id_, *call)]
        self._open.discard(id_)
        return [*begun, reading.tool_result(id_, _output(item), is_error=_failed(item))]

    def _ended(self, value: Object) -> Sequence[Translated]:
        used = _usage(obj(value.get("usage")))
        self._report = AgentReport("success", self._said, "completed", used)
        return [reading.usage(used), reading.final(self._report)]


def _call(item: Object) -> tuple[str, Any] | None:
    """Return name and arguments of an item that is the use of a tool."""
    match item.get("type"):
        case "command_execution":
            return "shell", {"command": item.get("command")}
        case "file_change":
            return "apply_patch", {"changes": item.get("changes")}
        case "mcp_tool_call":
            return f"{text(item.get('server'))}.{text(item.get('tool'))}", item.get("arguments")
        case "web_search":
            return "web_search", {"query": item.get("query")}
        case _:
            return None


def _output(item: Object) -> Any:
    if item.get("type") == "command_execution":
        return text(item.get("aggregated_output"))
    return item.get("result") or item.get("error") or text(item.get("status"))


def _failed(item: Object) -> bool:
    code = item.get("exit_code")
    return item.get("status") in {"failed", "declined"} or (isinstance(code, int) and code != 0)


def _message(value: Object) -> str:
    return text(value.get("message"))


def _usage(used: Object) -> TokenUsage:
    """The program counts what was read from or written to a cache among its input."""
    cached, written = number(used.get("cached_input_tokens")), number(used.get("cache_write_input_tokens"))
    return TokenUsage(
        input_tokens=max(0, number(used.get("input_tokens")) - cached - written),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=number(used.get("output_tokens")),
        reasoning_tokens=number(used.get("reasoning_output_tokens")),
    )

"""Lines of ``opencode run --format json``. There is no last line of its own: the program simply ends."""

from collections.abc import Sequence

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, text

_GOING_ON = frozenset({"tool-calls", ""})
"""Reasons of a step after which the program asks the model again."""


class OpenCodeParser:
    def __init__(self) -> None:
        self._report = AgentReport()
        self._said = ""
        self._used = TokenUsage()

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        if value is None:
            return ()
        part = obj(value.get("part"))
        match value.get("type"):
            case "text":
                return self._message(part)
            case "reasoning":
                return [reading.thinking(_text(part))]
            case "tool_use":
                return _tool(part)
            case "step_start":
                # Another step follows what looked like the end.
                self._report = AgentReport(usage=self._report.usage)
                return ()
            case "step_finish":
                return self._step(part)
            case "error":
                return self._failed(obj(value.get("error")))
            case _:
                return ()

    def _message(self, part: Object) -> Sequence[Translated]:
        self._said = _text(part)
        return [reading.message(self._said)]

    def _step(self, part: Object) -> Sequence[Translated]:
        self._used = self._used.plus(_usage(obj(part.get("tokens"))))
        reason = text(part.get("reason"))
        if reason in _GOING_ON:
            self._report = AgentReport(usage=self._used)
            return ()
        self._report = AgentReport("success" if reason == "stop" else "error", self._said, reason, self._used)
        return [reading.usage(self._used), reading.final(self._report)]

    def _failed(self, error: Object) -> Sequence[Translated]:
        said = text(obj(error.get("data")).get("message")) or text(error.get("message"))
        self._report = AgentReport("error", said, text(error.get("name")) or "error", self._used)
        return [reading.usage(self._used), reading.final(self._report)]


def _text(part: Object) -> str:
    return text(part.get("text"))


def _tool(part: Object) -> Sequence[Translated]:
    """A tool is named once, when it has ended."""
    state, id_ = obj(part.get("state")), part.get("callID")
    failed = state.get("status") == "error"
    code = obj(state.get("metadata")).get("exit")
    return [
        reading.tool_call(id_, part.get("tool"), state.get("input")),
        reading.tool_result(
            id_,
            text(state.get("error")) if failed else text(state.get("output")),
            is_error=failed or (isinstance(code, int) and code != 0),
        ),
    ]


def _usage(tokens: Object) -> TokenUsage:
    """The program tells reasoning apart from output, and the cache apart from input."""
    cache, reasoning = obj(tokens.get("cache")), number(tokens.get("reasoning"))
    return TokenUsage(
        input_tokens=number(tokens.get("input")),
        cached_input_tokens=number(cache.get("read")),
        cache_write_tokens=number(cache.get("write")),
        output_tokens=number(tokens.get("output")) + reasoning,
        reasoning_tokens=reasoning,
    )

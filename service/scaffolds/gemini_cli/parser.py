"""Lines of ``gemini --output-format stream-json``."""

from collections.abc import Sequence

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, text


class GeminiParser:
    def __init__(self) -> None:
        self._report = AgentReport()
        self._parts: list[str] = []
        self._said = ""

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        if value is None:
            return ()
        if value.get("type") == "message":
            return self._message(value)
        # A message comes in pieces; it is whole when something else comes.
        return [*self._whole(), *self._other(value)]

    def _message(self, value: Object) -> Sequence[Translated]:
        if value.get("role") != "assistant":
            return self._whole()
        self._parts.append(text(value.get("content")))
        return () if value.get("delta") is True else self._whole()

    def _whole(self) -> list[Translated]:
        said = "".join(self._parts)
        self._parts.clear()
        if not said:
            return []
        self._said = said
        return [reading.message(said)]

    def _other(self, value: Object) -> Sequence[Translated]:
        match value.get("type"):
            case "tool_use":
                return [reading.tool_call(value.get("tool_id"), value.get("tool_name"), value.get("parameters"))]
            case "tool_result":
                failed = value.get("status") != "success"
                output = value.get("output") or text(obj(value.get("error")).get("message"))
                return [reading.tool_result(value.get("tool_id"), output, is_error=failed)]
            case "error":
                return [reading.warning(text(value.get("message")))]
            case "result":
                return self._result(value)
            case _:
                return ()

    def _result(self, value: Object) -> Sequence[Translated]:
        used, error = _usage(obj(value.get("stats"))), obj(value.get("error"))
        if value.get("status") == "success":
            self._report = AgentReport("success", self._said, "completed", used)
        elif text(error.get("type")) == "FatalTurnLimitedError":
            self._report = AgentReport("limit", text(error.get("message")), "max_turns", used)
        else:
            self._report = AgentReport("error", text(error.get("message")), text(error.get("type")) or "error", used)
        return [reading.usage(used), reading.final(self._report)]


def _usage(stats: Object) -> TokenUsage:
    """The program counts what was read from a cache among its input, and reasoning nowhere but in the total."""
    cached, given, said = (
        number(stats.get("cached")),
        number(stats.get("input_tokens")),
        number(stats.get("output_tokens")),
    )
    reasoning = max(0, number(stats.get("total_tokens")) - given - said)
    return TokenUsage(
        input_tokens=max(0, given - cached),
        cached_input_tokens=cached,
        output_tokens=said + reasoning,
        reasoning_tokens=reasoning,
    )

"""Lines of ``sandbox_images/kits/openhands/run_openhands.py``: events of OpenHands' SDK, and a last word of ours."""

from collections.abc import Sequence

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, text


class OpenHandsParser:
    def __init__(self) -> None:
        self._report = AgentReport()
        self._said = ""
        self._error: tuple[str, str] | None = None

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        if value is None:
            return ()
        match value.get("kind"):
            case "MessageEvent" if value.get("source") == "agent":
                return self._message(obj(value.get("llm_message")))
            case "ActionEvent":
                return self._action(value)
            case "ObservationEvent":
                return [_result(value)]
            case "AgentErrorEvent" | "UserRejectObservation":
                said = _str(value, "error") or _str(value, "rejection_reason")
                return [reading.tool_result(value.get("tool_call_id"), said, is_error=True)]
            case "ConversationErrorEvent":
                self._error = (_str(value, "code"), _str(value, "detail"))
                return [reading.warning(": ".join(self._error))]
            case "WorksteadEnd":
                return self._ended(value)
            case _:
                return ()

    def _message(self, message: Object) -> Sequence[Translated]:
        events = [reading.thinking(thought)] if (thought := _str(message, "reasoning_content")) else []
        if said := reading.joined(message.get("content")):
            self._said = said
            events.append(reading.message(said))
        return events

    def _action(self, value: Object) -> Sequence[Translated]:
        events = [reading.thinking(thought)] if (thought := _str(value, "reasoning_content")) else []
        if said := reading.joined(value.get("thought")):
            self._said = said
            events.append(reading.message(said))
        arguments = {name: one for name, one in obj(value.get("action")).items() if name != "kind"}
        if value.get("tool_name") == "finish":
            self._said = text(arguments.get("message")) or self._said
        return [*events, reading.tool_call(value.get("tool_call_id"), value.get("tool_name"), arguments)]

    def _ended(self, value: Object) -> Sequence[Translated]:
        status, used = _str(value, "status"), _usage(value.get("usage"))
        code, detail = self._error or ("", "")
        if status == "limit":
            self._report = AgentReport("limit", self._said, "max_turns", used)
        elif status == "finished" and not self._error:
            self._report = AgentReport("success", self._said, "completed", used)
        else:
            self._report = AgentReport("error", detail or _str(value, "error"), code or status or "error", used)
        events = [reading.final(self._report)]
        if used is not None:
            events.insert(0, reading.usage(used))
        return events


def _str(value: Object, name: str) -> str:
    return text(value.get(name))


def _result(value: Object) -> Translated:
    seen = obj(value.get("observation"))
    code = seen.get("exit_code")
    failed = seen.get("is_error") is True or (isinstance(code, int) and code != 0)
    return reading.tool_result(value.get("tool_call_id"), reading.joined(seen.get("content")), is_error=failed)


def _usage(said: object) -> TokenUsage | None:
    """The SDK counts what was read from or written to a cache among the prompt's tokens."""
    if not isinstance(said, dict):
        return None
    used = obj(said)
    cached, written = number(used.get("cache_read_tokens")), number(used.get("cache_write_tokens"))
    return TokenUsage(
        input_tokens=max(0, number(used.get("prompt_tokens")) - cached - written),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=number(used.get("completion_tokens")),
        reasoning_tokens=number(used.get("reasoning_tokens")),
    )

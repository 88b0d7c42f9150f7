"""The object that ``openclaw agent exec --json`` prints when it ends, over many lines."""

from collections.abc import Sequence

from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, text

MAX_OBJECT_BYTES = 8 << 20
"""A longer one is not read; it stays raw output."""


class OpenClawParser:
    """The object begins and ends with a brace at the start of a line; inside it each line is indented."""

    def __init__(self) -> None:
        self._report = AgentReport()
        self._lines: list[bytes] = []
        self._bytes = 0

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        if stream != "stdout":
            return ()
        if text.rstrip() == b"{":
            self._lines, self._bytes = [], 0
        elif not self._lines:
            return ()
        self._lines.append(text)
        self._bytes += len(text)
        if self._bytes > MAX_OBJECT_BYTES:
            self._lines = []
        return self._ended() if text.rstrip() == b"}" else ()

    def _ended(self) -> Sequence[Translated]:
        value = reading.object_of(b"\n".join(self._lines))
        self._lines = []
        if value is None or "ok" not in value:
            return ()
        self._report = _report(value)
        events = [reading.final(self._report)]
        if self._report.text:
            events.insert(0, reading.message(self._report.text))
        if self._report.usage is not None:
            events.insert(-1, reading.usage(self._report.usage))
        return events


def _report(value: Object) -> AgentReport:
    said, status, error = text(value.get("final")), text(value.get("status")), obj(value.get("error"))
    used = _usage(value.get("usage"))
    if value.get("ok") is True and status == "ok":
        return AgentReport("success", said, "completed", used)
    return AgentReport("error", text(error.get("message")) or said, text(error.get("kind")) or status or "error", used)


def _usage(said: object) -> TokenUsage | None:
    if not isinstance(said, dict):
        return None
    used = obj(said)
    return TokenUsage(
        input_tokens=number(used.get("input")),
        cached_input_tokens=number(used.get("cacheRead")),
        cache_write_tokens=number(used.get("cacheWrite")),
        output_tokens=number(used.get("output")),
        reasoning_tokens=number(used.get("reasoningTokens")),
    )

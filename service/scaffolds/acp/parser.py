"""Lines of ``inside.py``: what an agent says in the Agent Client Protocol, and how the session ended."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from service.domain.events import EventType
from service.domain.limits import KIB
from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated
from service.scaffolds.reading import Object, number, obj, objects, text

MOST_TEXT = 64 * KIB
"""Characters of pieces that become one message."""
MOST_OPEN = 10_000
"""Tool calls that have begun and not ended; those beyond stay raw output."""
MOST_ENTRIES = 100
EMPTY = "empty_turn"
"""Reason of an end of which the agent thinks well and that nothing came before."""
_SAID = {"agent_message_chunk": reading.message, "agent_thought_chunk": reading.thinking}
_ENDINGS: dict[str, Literal["success", "limit"]] = {"end_turn": "success", "max_turn_requests": "limit"}
_OVER = ("completed", "failed")


@dataclass(slots=True)
class _Call:
    """A tool call, as its updates have told it so far."""

    kind: str = "other"
    title: str = ""
    arguments: Any = None
    output: str = ""
    told: bool = False


class AcpParser:
    def __init__(self) -> None:
        self._report = AgentReport()
        self._speaking = ""
        self._parts: list[str] = []
        self._size = 0
        self._said = ""
        self._calls: dict[str, _Call] = {}
        self._did = False

    def report(self) -> AgentReport:
        return self._report

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        value = reading.object_of(text) if stream == "stdout" else None
        match value and value.get("acp"):
            case "agent":
                return self._message(obj(obj(value).get("message")))
            case "permission":
                return [*self._spoken(), _permission(obj(value))]
            case "end":
                return [*self._spoken(), *self._ended(obj(value))]
            case _:
                return ()

    def _message(self, message: Object) -> Sequence[Translated]:
        params = obj(message.get("params"))
        match message.get("method"):
            case "session/update":
                return self._update(obj(params.get("update")))
            case "session/request_permission":
                # Some agents tell of a call in the question about it only.
                return [*self._spoken(), *self._tool(obj(params.get("toolCall")))]
            case _:
                return ()

    def _update(self, update: Object) -> Sequence[Translated]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk" | "agent_thought_chunk":
                return self._piece(text(update["sessionUpdate"]), text(obj(update.get("content")).get("text")))
            case "tool_call" | "tool_call_update":
                return [*self._spoken(), *self._tool(update)]
            case "plan":
                return [*self._spoken(), _plan(update)]
            case _:
                return ()

    def _piece(self, kind: str, said: str) -> Sequence[Translated]:
        """Take one piece of what is said: models speak in many, a reader wants the whole."""
        events = self._spoken() if kind != self._speaking or self._size > MOST_TEXT else ()
        self._speaking = kind
        self._parts.append(said)
        self._size += len(said)
        return events

    def _spoken(self) -> Sequence[Translated]:
        kind, whole = self._speaking, "".join(self._parts)
        self._speaking, self._size = "", 0
        self._parts.clear()
        if not whole.strip():
            return ()
        if kind == "agent_message_chunk":
            self._said = whole
        return [_SAID[kind](whole)]

    def _tool(self, update: Object) -> Sequence[Translated]:
        id_, status = text(update.get("toolCallId")), update.get("status")
        if not id_ or (id_ not in self._calls and len(self._calls) >= MOST_OPEN):
            return ()
        self._did = True
        call = self._calls.setdefault(id_, _Call())
        _merge(call, update)
        events: list[Translated] = []
        # Until it runs its arguments may still be on their way.
        if not call.told and status not in ("pending", None):
            call.told = True
            events.append(_called(id_, call))
        if status in _OVER:
            del self._calls[id_]
            events.append(reading.tool_result(id_, call.output, is_error=status == "failed"))
        return events

    def _ended(self, value: Object) -> Sequence[Translated]:
        reason, detail = text(value.get("reason")), text(value.get("detail"))
        if reason == "end_turn" and not self._did and not self._said:
            # What an agent does whose model does not answer.
            reason = EMPTY
        used = obj(value.get("usage"))
        tokens = _usage(used) if used else None
        self._report = AgentReport(_ENDINGS.get(reason, "error"), detail or self._said, reason or "error", tokens)
        final = reading.final(self._report)
        return [final] if tokens is None else [reading.usage(tokens), final]


def _merge(call: _Call, update: Object) -> None:
    call.kind = text(update.get("kind")) or call.kind
    call.title = text(update.get("title")) or call.title
    if update.get("rawInput"):
        call.arguments = update["rawInput"]
    shown = "\n".join(filter(None, (_shown(item) for item in objects(update.get("content")))))
    raw = update.get("rawOutput")
    call.output = shown or (raw if isinstance(raw, str) else "" if raw is None else json.dumps(raw)) or call.output


def _shown(item: Object) -> str:
    match item.get("type"):
        case "content":
            return text(obj(item.get("content")).get("text"))
        case "diff":
            return f"[changed {text(item.get('path'))}]"
        case _:
            return ""


def _called(id_: str, call: _Call) -> Translated:
    """The protocol has no names of tools: their kind stands for one."""
    event = reading.tool_call(id_, call.kind, call.arguments)
    return Translated(event.type, {**event.payload, "title": call.title})


def _permission(value: Object) -> Translated:
    payload = {name: text(value.get(name)) for name in ("id", "title", "kind", "decision", "option")}
    return Translated(EventType.AGENT_PERMISSION, payload)


def _plan(update: Object) -> Translated:
    names = ("content", "priority", "status")
    entries = [{name: text(entry.get(name)) for name in names} for entry in objects(update.get("entries"))]
    return Translated(EventType.AGENT_PLAN, {"entries": entries[:MOST_ENTRIES]})


def _usage(used: Object) -> TokenUsage:
    """Of the last prompt's whole turn. Whether output has the reasoning in it is told by the total."""
    names = ("inputTokens", "cachedReadTokens", "cachedWriteTokens", "outputTokens", "thoughtTokens")
    given, read, written, output, reasoning = (number(used.get(name)) for name in names)
    apart = given + read + written + output + reasoning <= number(used.get("totalTokens"))
    return TokenUsage(
        input_tokens=given,
        cached_input_tokens=read,
        cache_write_tokens=written,
        output_tokens=output + reasoning if apart else output,
        reasoning_tokens=reasoning,
    )

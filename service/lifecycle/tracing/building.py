"""The spans of a finished run: run > attempts > phases, and in these the requests to models, tool calls and service calls.

No message, argument or result is in them unless content is wanted, and never a key: what is read here is the ledger and
the log, which hold none.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain.events import Event, EventType
from service.domain.run_states import Outcome, Phase
from service.domain.traces import Span, Trace, Value, span_id, trace_id
from service.lifecycle.tracing import words
from service.store.rows import AttemptRow, RunRow
from service.store.rows_requests import ModelRequestRow, ServiceCallRow

TYPES = (EventType.RUN_PHASE, EventType.TOOL_CALL, EventType.TOOL_RESULT)
CONTENT_TYPES = (*TYPES, EventType.AGENT_MESSAGE)
MOST_SPANS = 20_000
"""Of one run; ``workstead.spans_dropped`` of the run's span says how many were left out."""
MOST_CHARS = 16_000
"""Of one text, where content is wanted."""
_NAME_CHARS = 100
_OF_ATTEMPT = frozenset(
    {Phase.PROVISIONING, Phase.RUNNING, Phase.PAUSED, Phase.AWAITING_CONFIRMATION, Phase.COLLECTING}
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a finished run. ``events`` are in order, of :data:`TYPES` or :data:`CONTENT_TYPES`."""

    run: RunRow
    attempts: Sequence[AttemptRow]
    events: Sequence[Event]
    requests: Sequence[ModelRequestRow]
    calls: Sequence[ServiceCallRow]
    left_out: int = 0
    """Rows that were not read."""


@dataclass(frozen=True, slots=True)
class _Phase:
    name: str
    n: int
    """Attempt; 0: of the run itself."""
    start: datetime
    end: datetime
    id: str


def trace_of(facts: Facts, *, content: bool = False) -> Trace:
    return _Builder(facts, content).trace()


class _Builder:
    def __init__(self, facts: Facts, content: bool) -> None:
        self._facts, self._run, self._content = facts, facts.run, content
        self._root = self._id("run")
        self._start = facts.run.created_at
        changes = [event for event in facts.events if event.type == EventType.RUN_PHASE]
        done = [event.ts for event in changes if event.payload.get("phase") == Phase.DONE]
        self._end = max(self._start, done[-1] if done else facts.run.updated_at)
        self._phases = list(self._phases_of(changes))

    def trace(self) -> Trace:
        spans = [*self._frame(), *self._requests(), *self._services(), *self._tools()]
        dropped = max(0, len(spans) - MOST_SPANS) + self._facts.left_out
        return Trace(trace_id(self._run.id), [self._whole(dropped), *spans[:MOST_SPANS]])

    def _whole(self, dropped: int) -> Span:
        run = self._run
        attributes = words.of_run(run) | ({"workstead.spans_dropped": dropped} if dropped else {})
        error = str(run.ended_because or "ungraded") if run.outcome is Outcome.UNGRADED else None
        return self._span(self._root, None, f"run {run.task_name}", self._start, self._end, attributes, error=error)

    def _frame(self) -> Iterator[Span]:
        for attempt in self._facts.attempts:
            attributes = words.present(
                {
                    "workstead.attempt": attempt.n,
                    "workstead.ended_because": attempt.ended_because,
                    "host.id": attempt.host_id,
                    "container.id": attempt.sandbox_id,
                }
            )
            end = attempt.released_at or attempt.collected_at or attempt.ended_at or self._end
            yield self._span(self._attempt(attempt.n), self._root, "attempt", attempt.created_at, end, attributes)
        for phase in self._phases:
            yield self._phase_span(phase)

    def _phase_span(self, phase: _Phase) -> Span:
        parent = self._attempt(phase.n) if phase.n else self._root
        attributes: dict[str, Value] = {"workstead.phase": phase.name}
        name = phase.name
        if phase.name == Phase.RUNNING:
            first = next((row for row in self._facts.requests if row.purpose == "agent"), None)
            attributes |= words.of_agent(self._run, first) | self._said(phase)
            name = f"invoke_agent {self._run.agent_label}"[:_NAME_CHARS]
        return self._span(phase.id, parent, name, phase.start, phase.end, attributes)

    def _phases_of(self, changes: Sequence[Event]) -> Iterator[_Phase]:
        known = {attempt.n for attempt in self._facts.attempts}
        for i, change in enumerate(changes):
            name = str(change.payload.get("phase"))
            if name == Phase.DONE:
                continue
            end = changes[i + 1].ts if i + 1 < len(changes) else self._end
            n = change.attempt if name in _OF_ATTEMPT and change.attempt in known else 0
            yield _Phase(name, n, change.ts, max(change.ts, end), self._id("phase", change.seq))

    def _requests(self) -> Iterator[Span]:
        for row in self._facts.requests:
            name = f"{words.operation(row)} {row.requested_model or ''}".strip()
            end = row.finished_at or self._end
            parent = self._at(row.created_at, row.attempt)
            yield self._span(
                self._id("request", row.id),
                parent,
                name,
                row.created_at,
                end,
                words.of_request(row),
                "client",
                row.error,
            )

    def _services(self) -> Iterator[Span]:
        for row in self._facts.calls:
            error = row.error or (str(row.status) if row.status is not None and row.status >= 400 else None)
            yield self._span(
                self._id("service", row.id), self._at(row.created_at, row.attempt), f"{row.method} {row.service}",
                row.created_at, row.finished_at or self._end, words.of_call(row), "client", error,
            )  # fmt: skip

    def _tools(self) -> Iterator[Span]:
        """Calls with their results; one without a result went on until the agent's phase ended."""
        results = {
            (event.attempt, str(event.payload.get("id"))): event
            for event in self._facts.events
            if event.type == EventType.TOOL_RESULT
        }
        for event in self._facts.events:
            if event.type == EventType.TOOL_CALL:
                yield self._tool(event, results.get((event.attempt, str(event.payload.get("id")))))

    def _tool(self, call: Event, result: Event | None) -> Span:
        name = str(call.payload.get("name") or "tool")[:_NAME_CHARS]
        phase = self._phase_at(call.ts, call.attempt)
        end = result.ts if result is not None else (self._end if phase is None else phase.end)
        failed = result is not None and bool(result.payload.get("is_error"))
        attributes: dict[str, Any] = {
            words.OPERATION: "execute_tool",
            words.TOOL_NAME: name,
            words.TOOL_TYPE: "function",
            words.TOOL_CALL: str(call.payload.get("id") or "")[:200],
            words.CONVERSATION: self._run.id,
        }
        if self._content:
            attributes[words.ARGUMENTS] = _text(call.payload.get("arguments"))
            attributes[words.RESULT] = None if result is None else _text(result.payload.get("output"))
        error = "no_result" if result is None else ("tool_error" if failed else None)
        parent = self._at(call.ts, call.attempt)
        identity, told = self._id("tool", call.seq), words.present(attributes)
        return self._span(identity, parent, f"execute_tool {name}", call.ts, end, told, error=error)

    def _said(self, phase: _Phase) -> dict[str, Value]:
        """Return what the agent said while it was at work, where content is wanted."""
        if not self._content:
            return {}
        said = [
            {"role": "assistant", "parts": [{"type": "text", "content": str(event.payload.get("text", ""))}]}
            for event in self._facts.events
            if event.type == EventType.AGENT_MESSAGE and phase.start <= event.ts <= phase.end
        ]
        return {words.OUTPUT: _text(said)} if said else {}

    def _at(self, when: datetime, attempt: int | None) -> str:
        """Return the span in which something happened."""
        phase = self._phase_at(when, attempt)
        if phase is not None:
            return phase.id
        return self._attempt(attempt) if any(a.n == attempt for a in self._facts.attempts) else self._root

    def _phase_at(self, when: datetime, attempt: int | None) -> _Phase | None:
        mine = (p for p in self._phases if p.n == attempt or p.n == 0)
        return next((p for p in mine if p.start <= when < p.end), None)

    def _span(
        self, identity: str, parent: str | None, name: str, start: datetime, end: datetime, attributes: Mapping[str, Value],
        kind: Any = "internal", error: str | None = None,
    ) -> Span:  # fmt: skip
        known = {words.ERROR: error} if error else {}
        return Span(identity, parent, name, start, max(start, end), kind, {**attributes, **known}, error)

    def _attempt(self, n: int | None) -> str:
        return self._id("attempt", n or 0)

    def _id(self, *parts: str | int) -> str:
        return span_id(self._run.id, *parts)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:MOST_CHARS]


def types(*, content: bool) -> Iterable[str]:
    return CONTENT_TYPES if content else TYPES

"""A run's trajectory in the Agent Trajectory Interchange Format, ATIF 1.7: a projection of its event log, pure.

A step of the agent begins with a request to its model; what the program then says and calls belongs to it, and a tool's
result to the step of its call. Where no request was seen (an agent without a model of ours) a step ends with results.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from service.domain.events import Event, EventType
from service.domain.trajectory_desktop import call_of, observation_of

SCHEMA_VERSION = "ATIF-v1.7"
MOST_CHARS = 200_000
"""Of one text; longer ones are cut with a mark."""
TYPES = (
    EventType.MODEL_REQUEST, EventType.AGENT_MESSAGE, EventType.AGENT_THINKING, EventType.AGENT_WARNING,
    EventType.AGENT_FINAL, EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.DESKTOP_ACTION,
)  # fmt: skip
"""What a trajectory is made of."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """What the log does not say of its run."""

    run_id: str
    attempt: int
    agent_name: str
    agent_version: str
    model_name: str | None
    effort: str | None
    instruction: str
    created_at: datetime
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class _Step:
    at: datetime
    source: str = "agent"
    message: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: list[Json] = field(default_factory=list[Json])
    results: list[Json] = field(default_factory=list[Json])
    request: Mapping[str, Any] | None = None

    @property
    def empty(self) -> bool:
        return not (self.message or self.reasoning or self.calls or self.results or self.request)


def atif(about: About, events: Iterable[Event]) -> Json:
    """Return the trajectory as JSON-able data. Events of other attempts are left out."""
    collector = _Collector(about)
    for event in events:
        if event.attempt == about.attempt:
            collector.take(event)
    return collector.result()


class _Collector:
    def __init__(self, about: About) -> None:
        self._about = about
        self._steps: list[_Step] = [_Step(about.created_at, "user", [about.instruction])]
        self._by_call: dict[str, _Step] = {}
        self._by_request: dict[str, _Step] = {}
        self._final: Mapping[str, Any] | None = None
        self._totals = {"prompt": 0, "completion": 0, "cached": 0}
        self._cost: float | None = None

    def take(self, event: Event) -> None:
        p = event.payload
        match event.type:
            case EventType.MODEL_REQUEST:
                self._request(event)
            case EventType.AGENT_MESSAGE:
                self._agent(event).message.append(_text(p.get("text", p)))
            case EventType.AGENT_THINKING:
                self._agent(event).reasoning.append(_text(p.get("text")))
            case EventType.TOOL_CALL:
                self._call(event)
            case EventType.TOOL_RESULT:
                self._result(event)
            case EventType.DESKTOP_ACTION:
                self._desktop(event)
            case EventType.AGENT_WARNING:
                self._steps.append(_Step(event.ts, "system", [_text(p.get("text"))]))
            case EventType.AGENT_FINAL:
                self._final = p
            case _:
                return

    def _request(self, event: Event) -> None:
        p = event.payload
        if p.get("purpose", "agent") != "agent":
            return
        key = str(p.get("request_id") or p.get("id") or p.get("n"))
        if p.get("state") == "started":
            self._by_request[key] = step = _Step(event.ts, request=p)
            self._steps.append(step)
        elif (step := self._by_request.get(key)) is not None:
            step.request = p
            self._count(p)

    def _count(self, p: Mapping[str, Any]) -> None:
        metrics = _metrics(p)
        self._totals["prompt"] += metrics.get("prompt_tokens", 0)
        self._totals["completion"] += metrics.get("completion_tokens", 0)
        self._totals["cached"] += metrics.get("cached_tokens", 0)
        if "cost_usd" in metrics:
            self._cost = (self._cost or 0.0) + metrics["cost_usd"]

    def _agent(self, event: Event) -> _Step:
        """Return the step that the agent is in; a new one where results have ended the last, unless a request began it."""
        last = self._steps[-1]
        if last.source != "agent" or (last.results and not self._by_request):
            last = _Step(event.ts)
            self._steps.append(last)
        return last

    def _call(self, event: Event) -> None:
        p, step = event.payload, self._agent(event)
        call_id = _text(p.get("id")) or f"call-{event.seq}"
        arguments = p.get("arguments")
        shaped = cast(Json, arguments) if isinstance(arguments, dict) else {"value": arguments}
        name = _text(p.get("name")) or "unknown"
        step.calls.append({"tool_call_id": call_id, "function_name": name, "arguments": shaped})
        self._by_call[call_id] = step

    def _result(self, event: Event) -> None:
        p = event.payload
        call_id = _text(p.get("id"))
        step = self._by_call.get(call_id)
        result: Json = {"content": _text(p.get("output"))}
        if step is not None:
            result["source_call_id"] = call_id
        if p.get("is_error"):
            result["extra"] = {"is_error": True}
        (step or self._agent(event)).results.append(result)

    def _desktop(self, event: Event) -> None:
        """A batch belongs to the call that it was made for; one that no call is known of is a call by itself."""
        p = event.payload
        call_id = _text(p.get("id")) or f"call-{event.seq}"
        call, step = call_of(p, call_id), self._by_call.get(call_id)
        if step is None:
            step = self._by_call[call_id] = self._agent(event)
            step.calls.append(call)
        else:
            known = next(one for one in step.calls if one["tool_call_id"] == call_id)
            known["extra"] = {**call["arguments"], **call["extra"]}
        step.results.append({**observation_of(p, event.run_id), "source_call_id": call_id})

    def result(self) -> Json:
        about = self._about
        steps = [_shaped(s, n, about) for n, s in enumerate((s for s in self._steps if not s.empty), 1)]
        agent: Json = {"name": about.agent_name, "version": about.agent_version}
        if about.model_name:
            agent["model_name"] = about.model_name
        final: Json = {
            "total_prompt_tokens": self._totals["prompt"],
            "total_completion_tokens": self._totals["completion"],
            "total_cached_tokens": self._totals["cached"],
            "total_steps": len(steps),
        }
        if self._cost is not None:
            final["total_cost_usd"] = round(self._cost, 10)
        extra = {**about.extra, **({"final": dict(self._final)} if self._final is not None else {})}
        return {
            "schema_version": SCHEMA_VERSION,
            "session_id": about.run_id,
            "trajectory_id": f"{about.run_id}-{about.attempt}",
            "agent": agent,
            "steps": steps,
            "final_metrics": final,
            "extra": extra,
        }


def _shaped(step: _Step, number: int, about: About) -> Json:
    shaped: Json = {
        "step_id": number,
        "timestamp": step.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "source": step.source,
        "message": "\n\n".join(text for text in step.message if text),
    }
    if step.source != "agent":
        return shaped
    if step.reasoning:
        shaped["reasoning_content"] = "\n\n".join(step.reasoning)
    if step.calls:
        shaped["tool_calls"] = step.calls
    if step.results:
        shaped["observation"] = {"results": step.results}
    if step.request is not None:
        model = step.request.get("reported_model") or step.request.get("requested_model")
        shaped |= {"model_name": model} if model else {}
        shaped |= {"reasoning_effort": about.effort} if about.effort else {}
        metrics = _metrics(step.request)
        shaped |= {"metrics": metrics} if metrics else {}
    return shaped


def _metrics(p: Mapping[str, Any]) -> Json:
    """Return ATIF's figures of a settled request: its prompt tokens include cached ones."""
    if p.get("state") != "finished" or not p.get("usage_known"):
        return {}
    counts = {name: int(p.get(name) or 0) for name in ("input_tokens", "cached_input_tokens", "cache_write_tokens")}
    metrics: Json = {
        "prompt_tokens": sum(counts.values()),
        "completion_tokens": int(p.get("output_tokens") or 0),
        "cached_tokens": counts["cached_input_tokens"],
    }
    if p.get("cost_usd") is not None:
        metrics["cost_usd"] = float(p["cost_usd"])
    return metrics


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= MOST_CHARS:
        return text
    return f"{text[:MOST_CHARS]}\n[{len(text) - MOST_CHARS} more characters are in the event log]"

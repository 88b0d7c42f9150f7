"""Events and runs in one line each. Everything returned is safe for a terminal."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from workstead.models import Event, Run
from workstead.terminal import one_line, safe

LINES_PER_EVENT = 6
Payload = Mapping[str, Any]


def describe(event: Event) -> list[str]:
    """Return what an event says, a line or a few."""
    p = event.payload
    if event.type == "output":
        return _output(str(p.get("text", "")))
    said = _SAID.get(event.type)
    return [_words(*said(p))] if said is not None else [one_line(json.dumps(p, ensure_ascii=False), 140)]


def _request(p: Payload) -> Sequence[Any]:
    who = _either(p, "requested_model", "model_id")
    if p.get("state") == "started":
        return (f"{p.get('n')}", who, "asked")
    tokens = (
        f"{p.get('input_tokens', 0)} + {p.get('output_tokens', 0)} tokens" if p.get("usage_known") else "usage unknown"
    )
    cost = f"${p['cost_usd']}" if p.get("cost_usd") is not None else None
    return (f"{p.get('n')}", who, p.get("error") or p.get("status"), tokens, cost)


def _egress(p: Payload) -> Sequence[Any]:
    where = f"{p.get('method')} {p.get('host')}:{p.get('port')}" if p.get("host") else "request"
    return (where, "let through" if p.get("allowed") else f"refused: {p.get('reason')}", p.get("path"))


def _acts(p: Payload) -> str:
    found = p.get("actions")
    done = cast("list[Any]", found) if isinstance(found, list) else []
    return ", ".join(_act(action) for action in done[:4]) + (f" and {len(done) - 4} more" if len(done) > 4 else "")


def _act(action: Any) -> str:
    if not isinstance(action, dict):
        return ""
    fields = cast("dict[str, Any]", action)
    place = f"{fields['x']},{fields.get('y')}" if fields.get("x") is not None else ""
    what = place or fields.get("text") or fields.get("keys") or ""
    return f"{fields.get('type')} {what if isinstance(what, str) else json.dumps(what)}".strip()


def _either(p: Payload, *names: str) -> Any:
    return next((p[name] for name in names if p.get(name)), None)


_SAID: dict[str, Callable[[Payload], Sequence[Any]]] = {
    "run.phase": lambda p: (p.get("phase"), p.get("outcome"), p.get("ended_because")),
    "run.validity": lambda p: (p.get("outcome"), p.get("reason")),
    "attempt.started": lambda p: (f"attempt {p.get('attempt')}", p.get("host"), p.get("runtime")),
    "attempt.ended": lambda p: (p.get("ended_because"),),
    "output.closed": lambda p: (p.get("stream"), f"{p.get('total_bytes')} bytes"),
    "note": lambda p: (p.get("text"), p.get("engine_error")),
    "deliverable.sealed": lambda p: (
        f"{p.get('files')} files, {p.get('bytes')} bytes, digest {str(p.get('digest'))[:19]}",
    ),
    "deliverable.checked": lambda p: (
        f"{p.get('files')} files looked at, {p.get('problems') or 'none'} with problems",
    ),
    "verdict": lambda p: (p.get("method"), p.get("state"), _score(p.get("score"), p.get("max_score"))),
    "desktop.action": lambda p: (_acts(p), p.get("error"), p.get("title")),
    "confirmation": lambda p: (p.get("state"), p.get("by"), p.get("intent")),
    "agent.message": lambda p: (p.get("text") or json.dumps(p, ensure_ascii=False),),
    "agent.thinking": lambda p: ("thinks", p.get("text")),
    "agent.warning": lambda p: (p.get("text"),),
    "agent.permission": lambda p: ("asked:", p.get("decision"), p.get("kind"), p.get("title")),
    "agent.plan": lambda p: ("plans", json.dumps(p.get("entries"), ensure_ascii=False)),
    "agent.final": lambda p: (p.get("status"), p.get("reason"), p.get("text")),
    "tool.call": lambda p: (p.get("name"), json.dumps(p.get("arguments"), ensure_ascii=False)),
    "tool.result": lambda p: ("error" if p.get("is_error") else None, p.get("output")),
    "model.request": _request,
    "provider.tools": lambda p: ("taken out" if p.get("denied") else "used", p.get("denied") or p.get("used")),
    "provider.wait": lambda p: (f"waited {p.get('seconds')} s for the provider", p.get("reason")),
    "egress.decision": _egress,
    "service.call": lambda p: (p.get("service"), p.get("method"), p.get("path"), p.get("status")),
    "client.message": lambda p: (
        "to the client" if p.get("direction") == "to_client" else "from the client",
        p.get("text"),
    ),
    "driver": lambda p: (p.get("action"), p.get("holder")),
    "run.ready": lambda p: ("waits for its driver", p.get("driver")),
    "loop.step": lambda p: (f"step {p.get('step')}", p.get("kind")),
}


def _output(text: str) -> list[str]:
    lines = [one_line(part, 160) for part in safe(text).split("\n") if part.strip()]
    if len(lines) > LINES_PER_EVENT:
        lines = [*lines[:LINES_PER_EVENT], f"… {len(lines) - LINES_PER_EVENT} more lines"]
    return lines


def _words(*parts: Any) -> str:
    return one_line(" · ".join(str(p) for p in parts if p not in (None, "")), 140)


def _score(score: Any, most: Any) -> str:
    return "" if score is None or most is None else f"{score:g}/{most:g}"


def verdict(run: Run) -> str:
    """Return score and outcome, or why there is no score."""
    if run.verdict.score is not None and run.verdict.max_score is not None:
        return f"{run.verdict.score:g}/{run.verdict.max_score:g}"
    return one_line(run.outcome or run.verdict.state, 40)


def hold(run: Run) -> str:
    """Return why a run does not go on, and its place in the queue; nothing if nothing holds it."""
    if not run.hold:
        return ""
    place = run.hold.get("position")
    said = run.hold.get("detail") or run.hold.get("reason") or "held"
    return one_line(f"({said}{'' if place is None else f'; place {place} in the queue'})", 160)


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def name(run: Run) -> str:
    return one_line(f"{run.agent.label} · {run.task.name} #{run.sample}", 90)


def tail(texts: Iterable[str], keep: int = 2000) -> str:
    """Join pieces of output, keeping only the end."""
    return "".join(texts)[-keep:]

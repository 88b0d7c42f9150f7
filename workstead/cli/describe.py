"""Events and runs in one line each. Everything returned is safe for a terminal."""

import json
from collections.abc import Iterable
from typing import Any

from workstead.models import Event, Run
from workstead.terminal import one_line, safe

LINES_PER_EVENT = 6


def describe(event: Event) -> list[str]:
    """Return what an event says, a line or a few."""
    p = event.payload
    match event.type:
        case "run.phase":
            return [_words(p.get("phase"), p.get("outcome"), p.get("ended_because"))]
        case "output":
            return _output(str(p.get("text", "")))
        case "attempt.started":
            return [_words(f"attempt {p.get('attempt')}", p.get("host"), p.get("runtime"))]
        case "output.closed":
            return [_words(p.get("stream"), f"{p.get('total_bytes')} bytes")]
        case "note":
            return [_words(p.get("text"), p.get("engine_error"))]
        case "attempt.ended":
            return [_words(p.get("ended_because"))]
        case "deliverable.sealed":
            return [
                one_line(f"{p.get('files')} files, {p.get('bytes')} bytes, digest {str(p.get('digest'))[:19]}", 140)
            ]
        case "deliverable.checked":
            return [one_line(f"{p.get('files')} files looked at, {p.get('problems') or 'none'} with problems", 140)]
        case "verdict":
            return [_words(p.get("method"), p.get("state"), _score(p.get("score"), p.get("max_score")))]
        case _:
            return [one_line(json.dumps(p, ensure_ascii=False), 140)]


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

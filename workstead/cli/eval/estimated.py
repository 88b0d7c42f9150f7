"""A draft in words: what it means, and what it may take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from workstead.cli.common import facts, line, out
from workstead.cli.tables import plain_table
from workstead.models_evaluations import Evaluation, EvaluationAgent

MOST_WARNINGS = 40
QUANTILES = ("p10", "p50", "p90")


def show_draft(drafted: Evaluation) -> None:
    """Print the agents, the runs, dollars and hours with what they rest on, and what to look at before it starts."""
    estimate, resolved = drafted.estimate or {}, drafted.resolved or {}
    parts = {part.get("id"): part for part in cast("list[dict[str, Any]]", estimate.get("agents") or [])}
    rows = [_row(agent, parts.get(agent.id, {})) for agent in drafted.agents]
    out.print(plain_table(("agent", "samples", "runs", "basis", "dollars", "hours"), rows))
    head = {
        "evaluation": drafted.id,
        "name": drafted.name,
        "tasks": _count(resolved.get("tasks")),
        "plan": drafted.plan,
    }
    facts(head | estimated(estimate))
    warnings = drafted.warnings or []
    for warning in warnings[:MOST_WARNINGS]:
        line(f"note: {said(warning)}", "yellow")
    if len(warnings) > MOST_WARNINGS:
        line(f"… and {len(warnings) - MOST_WARNINGS} more; --json has all", "yellow")


def _row(agent: EvaluationAgent, part: Mapping[str, Any]) -> tuple[object, ...]:
    basis = f"{part.get('basis')} ({part.get('n')})" if part.get("n") else part.get("basis")
    dollars, hours = (_spread(part.get(name), "$" * (name == "agents_usd")) for name in ("agents_usd", "run_hours"))
    return agent.label or agent.id, agent.samples, part.get("runs"), basis, dollars, hours


def estimated(estimate: Mapping[str, Any]) -> dict[str, object]:
    """Return the estimate as names and values; each is the median, with what 1 of 10 is below and above."""
    judges = cast("dict[str, Any]", estimate.get("judges") or {})
    disk = cast("dict[str, Any]", estimate.get("disk_bytes") or {})
    return {
        "runs": estimate.get("runs"),
        "agents": _spread(estimate.get("agents_usd"), "$"),
        "judges": f"{_spread(estimate.get('judges_usd'), '$')} for {judges.get('calls', 0)} calls ({judges.get('basis')})",
        "people grade": estimate.get("people_gradings") or None,
        "run hours": _spread(estimate.get("run_hours"), "", " h"),
        "finished after": f"{_spread(_hours(estimate.get('finish_s')), '', ' h')} with {estimate.get('slots', 0)} slots",
        "disk": ", ".join(f"{_gib(size)} {what}" for what, size in disk.items() if size is not None),
    }


def refusals(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why a draft was refused, by agent and task."""
    for one in cast("Sequence[Any]", fields.get("problems") or ()):
        yield said(one)


def said(one: Any) -> str:
    """Return a warning or a problem in one line, whoever it is about first."""
    if not isinstance(one, dict):
        return str(one)
    found = cast("dict[str, Any]", one)
    about = [str(found[name]) for name in ("agent", "task", "item") if found.get(name)]
    text = found.get("detail") or found.get("message") or found.get("text") or ""
    kind = found.get("type") or found.get("kind") or ""
    return ": ".join(part for part in (" · ".join(about), str(kind), str(text)) if part)


def _count(found: Any) -> int | None:
    return len(cast("Sequence[Any]", found)) if isinstance(found, list) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _hours(value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    found = {name: _number(part) for name, part in cast("dict[str, Any]", value).items()}
    return {name: None if part is None else part / 3600 for name, part in found.items()}


def _spread(value: Any, before: str, after: str = "") -> str:
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    low, middle, high = (_number(found.get(name)) for name in QUANTILES)
    if middle is None:
        return "unknown"
    text = f"{before}{middle:.2f}{after}"
    return text if low is None or high is None else f"{text} ({before}{low:.2f} to {before}{high:.2f})"


def _gib(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"

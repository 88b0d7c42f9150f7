"""A draft in words: what it means, and what it may take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from workstead.cli.common import facts, line, out
from workstead.cli.tables import plain_table
from workstead.models_evaluations import Evaluation

MOST_WARNINGS = 40
QUANTILES = ("p10", "p50", "p90")


def show_draft(drafted: Evaluation) -> None:
    """Print the agents, the runs, dollars and hours with what they rest on, and what to look at before it starts."""
    rows = [(agent.label or agent.id, agent.samples, agent.total or None) for agent in drafted.agents]
    out.print(plain_table(("agent", "samples", "runs"), rows))
    facts(
        {
            "evaluation": drafted.id,
            "name": drafted.name,
            "tasks": _count(drafted.resolved.get("tasks")),
            "plan": drafted.plan,
        }
    )
    facts(estimated(drafted.estimate))
    warnings = drafted.warnings or cast("list[Any]", drafted.resolved.get("warnings") or [])
    for warning in warnings[:MOST_WARNINGS]:
        line(f"note: {said(warning)}", "yellow")
    if len(warnings) > MOST_WARNINGS:
        line(f"… and {len(warnings) - MOST_WARNINGS} more; --json has all", "yellow")


def estimated(estimate: Mapping[str, Any]) -> dict[str, object]:
    """Return the estimate as names and values; each is the median, with what 1 of 10 is below and above."""
    return {
        "runs": estimate.get("runs"),
        "agents": _spread(estimate.get("agents_usd"), "$"),
        "judges": _spread(estimate.get("judges_usd"), "$"),
        "run hours": _spread(estimate.get("run_hours"), "", " h"),
        "finished after": _spread(_hours(estimate.get("finish_s")), "", " h"),
        "basis": _basis(estimate.get("basis")),
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


def _basis(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None if value is None else str(value)
    kinds: dict[str, int] = {}
    for one in cast("dict[str, Any]", value).values():
        kind = str(cast("dict[str, Any]", one).get("kind", "none")) if isinstance(one, dict) else str(one)
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{n} of {kind}" for kind, n in sorted(kinds.items()))
